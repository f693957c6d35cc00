"""The composition root: from a TOML file to a wired instrument. Nothing else reads settings or finds plug-ins."""
