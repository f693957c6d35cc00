"""The programming interfaces of the projects that this one grew out of: thin faces over the kernel."""
