"""Items of `panda batch` on the workers of a cluster of Dask."""

from panda.addon_registry import Addon

ADDON = Addon(name="cluster", engines={"dask": "panda.addons.cluster.dask:DaskCluster"})
