"""Where the app's settings come from: the folder of its script, wherever Streamlit is started."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path


def test_settings_are_found_from_any_folder(repository: Path, tmp_path: Path) -> None:
    """The settings beside the script win over those of the folder that Streamlit is started in."""
    (tmp_path / ".streamlit").mkdir()
    (tmp_path / ".streamlit" / "config.toml").write_text('[server]\naddress = "0.0.0.0"\n')
    (tmp_path / "probe.py").write_text(
        "import streamlit.web.bootstrap as bootstrap\n"
        "from streamlit import config\n"
        "from streamlit.web import cli\n"
        "names = ('server.address', 'server.showEmailPrompt', 'browser.gatherUsageStats', 'server.fileWatcherType',\n"
        "         'server.enableXsrfProtection', 'server.maxUploadSize', 'client.toolbarMode')\n"
        "bootstrap.run = lambda *_: print([config.get_option(name) for name in names])\n"
        "cli.main()\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STREAMLIT_")}
    command = [sys.executable, "probe.py", "run", str(repository / "ui" / "app.py")]
    started = subprocess.run(
        command,
        cwd=tmp_path,
        env={**environment, "HOME": str(tmp_path / "home"), "USERPROFILE": str(tmp_path / "home")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    assert started.stdout.strip() == "['127.0.0.1', False, False, 'none', True, 200, 'minimal']"
    settings = tomllib.loads((repository / "ui/.streamlit/config.toml").read_text())
    assert settings["server"]["address"] == "127.0.0.1"
