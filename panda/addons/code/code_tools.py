"""The tools of code mode."""

from panda.addons.code.file_tools import FILE_TOOLS
from panda.addons.code.git import GIT_TOOLS
from panda.addons.code.processes import run_command

CODE_TOOLS = (*FILE_TOOLS, *GIT_TOOLS, run_command)
