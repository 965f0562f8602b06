import errno
import shutil

from dualread.errors import ArtifactError
from dualread.store import disk
from dualread.store.disk import is_no_space


def test_a_full_disk_is_recognized_by_the_message_and_by_its_free_space(tmp_path, monkeypatch):
    assert is_no_space(OSError(errno.EDQUOT, "quota"), tmp_path)
    assert is_no_space(RuntimeError("No space left on device (os error 28)"), tmp_path)
    assert is_no_space(RuntimeError("File too large (os error 27)"), tmp_path)  # a limit on the size of files
    assert not is_no_space(OSError(errno.EACCES, "denied"), tmp_path)
    assert not is_no_space(RuntimeError("transport error"), tmp_path / "nowhere")
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda folder: usage._replace(free=4096))
    assert is_no_space(RuntimeError("transport error"), tmp_path)
    assert not is_no_space(ArtifactError("a damaged file"), tmp_path)
