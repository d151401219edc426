"""What the commands do, one file each; `gaussfold.cli.app` says how they are called."""
