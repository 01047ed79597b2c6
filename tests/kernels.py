"""Kernels of notebooks, forked from a process that has imported the package."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from jupyter_client.provisioning.local_provisioner import LocalProvisioner

from tests.processes import start


class Forked(LocalProvisioner):
    """Starts kernels by forking a process that has imported the package, in a moment each."""

    process: Any

    async def launch_kernel(self, cmd: list[str], **options: Any) -> Any:
        """Start what `cmd` says, after the name of the interpreter."""
        assert cmd[1:3] == ["-m", "ipykernel_launcher"]
        with contextlib.chdir(options["cwd"]):
            self.process = start(*cmd[1:], imports=["ipykernel.kernelapp"])
        return self.connection_info

    async def wait(self) -> int | None:
        """Wait for its end."""
        while await self.poll() is None:
            await asyncio.sleep(0.01)
        self.process.communicate()
        code, self.process = self.process.returncode, None
        return code
