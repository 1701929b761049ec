"""The names by which programs find what they run, perhaps only because somebody stands in a directory."""

from collections.abc import Sequence
from fnmatch import translate

from panda.language.patterns import lazy_pattern

_NAMES = {
    "continuous integration and hosting": (
        *("appveyor*.y*ml", "azure-pipelines*.y*ml", "bitbucket-pipelines*", "bitrise*.y*ml"),
        *("buddy*.y*ml", "buildspec*.y*ml", "circle.y*ml", "cloudbuild*.y*ml", "cloudbuild*.json"),
        *("codecov.y*ml", "codemagic*.y*ml", "dagger.json", "jenkinsfile*", "*.jenkinsfile"),
        *("screwdriver.y*ml", "semaphore.y*ml", "shippable.y*ml", "wercker*.y*ml", "action.y*ml"),
        *("amplify.y*ml", "cdk.json", "firebase.json", "fly*.toml", "heroku.y*ml", "netlify.toml"),
        *("now.json", "procfile*", "railway.json", "railway.toml", "render.y*ml", "samconfig.toml"),
        *("serverless.y*ml", "serverless.json", "serverless.?s", "vercel.json", "werf*.y*ml"),
        *("wrangler.toml", "wrangler.json*", "readthedocs.y*ml", "renovate.json*"),
        *("sonar-project.properties",),
    ),
    "containers and machines": (
        *("dockerfile*", "*.dockerfile", "containerfile*", "*.containerfile", "docker-bake*"),
        *("*compose*.y*ml", "earthfile", "skaffold*.y*ml", "tiltfile*", "garden*.y*ml"),
        *("helmfile*.y*ml", "chart.y*ml", "kustomization", "kustomization.y*ml", "vagrantfile*"),
        *("ansible*.cfg", "terragrunt.hcl", "puppetfile", "berksfile", "cheffile"),
    ),
    "agents": (
        *("agent.md", "agents*.md", "claude*.md", "claude*.json", "gemini*.md", "copilot*.md"),
        *("codex*.md", "qwen*.md", "crush.json", "crush.md", "opencode*.json*", "replit.nix"),
        *("replit.md", "skill.md", "warp.md", "*mcp*.json"),
    ),
    "git hooks": (
        *("applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit"),
        *("prepare-commit-msg", "commit-msg", "post-commit", "pre-rebase", "post-checkout"),
        *("post-merge", "pre-push", "pre-receive", "update", "proc-receive", "post-receive"),
        *("post-update", "reference-transaction", "push-to-checkout", "pre-auto-gc", "post-rewrite"),
        *("sendemail-validate", "fsmonitor-watchman", "p4-changelist", "p4-prepare-changelist"),
        *("p4-post-changelist", "p4-pre-submit", "post-index-change", "lefthook*.y*ml"),
        *("lefthook*.toml", "lefthook*.json", "pre-commit*.y*ml", "prek.toml", "hk.pkl"),
        *("captainhook*.json", "grumphp*.y*ml", "simple-git-hooks*", "overcommit.y*ml"),
    ),
    "make and its like": (
        *("makefile", "gnumakefile", "bsdmakefile", "nmakefile", "makefile.am", "makefile.in"),
        *("makefile.inc", "makefile.toml", "*.mk", "*.mak", "justfile", "*.just", "taskfile*.y*ml"),
        *("rakefile*", "*.rake", "sconstruct*", "sconscript*", "wscript*", "meson.build"),
        *("meson_options.txt", "meson.options", "configure", "configure.ac", "configure.in"),
        *("configure.py", "autogen.sh", "bootstrap", "cmakelists.txt", "cmake*presets.json", "*.cmake"),
        *("*.ninja", "kbuild", "kconfig", "xmake.lua", "premake*.lua", "tupfile*", "tuprules*"),
        *("jamroot*", "jamfile*", "*.jam", "build.zig*", "*.pro", "*.pri", "*.qbs", "dodo.py"),
        *("fabfile*", "tasks.json", "invoke.y*ml", "invoke.json", "maskfile.md", "runfile"),
        *("snakefile*", "dvc.y*ml", "mlproject", "workspace", "workspace.bazel", "workspace.bzlmod"),
        *("module.bazel*", "build", "*.bazel", "*.bzl", "*.bazelrc", "buck", "targets", "pants*.toml"),
        *("magefile.go", "conanfile*", "vcpkg*.json"),
    ),
    "Python": (
        *("setup.py", "setup.cfg", "pyproject.toml", "pip.conf", "pip.ini", "requirements*.txt"),
        *("requirements*.in", "constraints*.txt", "tox.ini", "tox.toml", "noxfile*", "pyvenv.cfg"),
        *("*.pth", "*.egg-link", "pylintrc*", "mypy.ini", "pytest.ini", "pytest.toml", "uv.toml"),
        *("poetry.toml", "pdm.toml", "pixi.toml", "hatch.toml", "ruff.toml", "pipfile*"),
        *("pyrightconfig.json", "behave.ini", "alembic.ini", "jupyter*config.*", "ipython*config.*"),
        *("gunicorn*.conf.py", "mkdocs*.y*ml", "sitecustomize*", "usercustomize*", "pyoxidizer.bzl"),
    ),
    "JavaScript": (
        *("package*.json", "npm-shrinkwrap.json", "pnpm-*.y*ml", "binding.gyp", "*.gyp", "*.gypi"),
        *("*.config.*js", "*.config.*ts", "*.config.json", "*.conf.*js", "gulpfile*", "gruntfile*"),
        *("jakefile*", "tsconfig*.json", "jsconfig*.json", "deno.json*", "bunfig.toml", "lerna.json"),
        *("nx.json", "turbo.json*", "rush.json", "project.json", "angular.json", "biome.json*"),
        *("bower.json", "ember-cli-build.js", "config.gypi"),
    ),
    "the JVM": (
        *("pom.xml", "pom.y*ml", "build.xml", "ivy*.xml", "*.gradle", "*.gradle.*", "gradle.properties"),
        *("gradlew*", "mvnw*", "*.sbt", "build.sc", "build.mill*", "build.properties", "project.clj"),
        *("deps.edn", "bb.edn", "shadow-cljs.edn", "build.boot", "profiles.clj"),
    ),
    ".NET": (
        *("nuget.config", "directory.*.props", "directory.*.targets", "directory.*.rsp", "*.props"),
        *("*.targets", "*.csproj", "*.fsproj", "*.vbproj", "*.vcxproj*", "*.proj", "*.sln", "*.slnx"),
        *("*.rsp", "*.nuspec", "global.json", "packages.config", "paket.*", "*.cake", "web.config"),
        *("app.config",),
    ),
    "other languages": (
        *("cargo.toml", "build.rs", "rust-toolchain*", "clippy.toml", "rustfmt.toml", "cross.toml"),
        *("composer.json", "phpunit*.xml*", "phpstan*.neon*", "psalm.xml*", "php.ini", "box.json"),
        *("gemfile*", "gems.rb", "gems.locked", "*.gemspec", "guardfile", "capfile", "brewfile"),
        *("fastfile", "podfile*", "*.podspec*", "dangerfile*", "appraisals", "thorfile", "steepfile"),
        *("config.ru", "go.mod", "go.sum", "go.work*", "mix.exs", "rebar.config*", "*.nimble"),
        *("nim.cfg", "*.nims", "dune", "dune-project", "dune-workspace", "dune-file", "*.opam", "opam"),
        *("package.swift", "package.y*ml", "stack.y*ml", "cabal.project*", "*.cabal", "setup.hs"),
        *("setup.lhs", "spago.dhall", "spago.y*ml", "elm.json", "gleam.toml", "dub.json", "dub.sdl"),
        *("shard.y*ml", "project.toml", "manifest.toml", "startup.jl", "nextflow.config"),
        *("pubspec*.y*ml", "*.lock", "*.lockb", "*-lock.json", "*-lock.y*ml"),
    ),
    "environments": (
        *("flake.nix", "shell.nix", "default.nix", "devbox*.json", "devenv.nix", "devenv.y*ml"),
        *("mise*.toml", "rtx*.toml", "guix.scm", "manifest.scm", "hermit.hcl", "aqua*.y*ml", "envrc"),
        *("direnvrc",),
    ),
    "editors and desktops": (
        *("*.code-workspace", "*.sublime-*", "_*rc", "_viminfo", "*.vim", "*.iml", "*.ipr", "*.iws"),
        *("autorun.inf", "desktop.ini", "*.desktop", "*.lnk", "*.scf", "*.url"),
    ),
}
"""Patterns of file names in small letters, by who looks for them, beside all names that begin with a dot."""
_DIRECTORIES = frozenset(
    {
        *("__pycache__", "buildsrc", "git-hooks", "githooks", "gradle", "node_modules", "site-packages"),
        *("sitecustomize", "usercustomize"),
    }
)
_SHORT_NAME = lazy_pattern(r"~\d")
_OBEYED = lazy_pattern("|".join(translate(pattern) for group in _NAMES.values() for pattern in group))


def is_obeyed(names: Sequence[str]) -> bool:
    """
    Return whether programs look for a file by its name and run or obey what it says.

    Args:
        names: The parts of its path, as `plain_name` gives them. A short name of Windows ("makefi~1") may
            stand for any other and counts as obeyed.
    """
    return (
        any(name.startswith(".") or name in _DIRECTORIES or _SHORT_NAME.search(name) for name in names)
        or _OBEYED.match(names[-1]) is not None
    )
