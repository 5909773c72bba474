"""A file's directory is synced with its first sync, whatever name either has by then; others' files cost nothing."""

import pytest

from dataplane.storage import files as door
from dataplane.storage.files import SystemFiles
from dataplane.storage.unlisted import Unlisted


@pytest.fixture
def synced(monkeypatch):
    """Paths whose directory was synced."""
    paths = []
    monkeypatch.setattr(door, "_sync_directory", paths.append)
    return paths


def test_the_first_sync_of_a_new_file_syncs_its_directory(tmp_path, synced):
    files, path = SystemFiles(), f"{tmp_path}/a"
    files.open(path, create=True).sync()
    files.open(path).sync()
    assert synced == [path]


def test_a_file_that_was_closed_and_opened_again_is_remembered(tmp_path, synced):
    files, path = SystemFiles(), f"{tmp_path}/a"
    files.open(path, create=True).close()
    files.open(path).sync()
    assert synced == [path]


def test_a_file_that_was_renamed_is_remembered_by_its_new_name(tmp_path, synced):
    files = SystemFiles()
    files.open(f"{tmp_path}/a", create=True)
    files.rename(f"{tmp_path}/a", f"{tmp_path}/b")
    files.open(f"{tmp_path}/b").sync()
    assert synced == [f"{tmp_path}/b"]


def test_files_of_a_directory_that_was_renamed_are_remembered(tmp_path, synced):
    files = SystemFiles()
    files.make_directory(f"{tmp_path}/old")
    files.open(f"{tmp_path}/old/a", create=True)
    files.rename(f"{tmp_path}/old", f"{tmp_path}/new")
    files.open(f"{tmp_path}/new/a").sync()
    assert synced == [f"{tmp_path}/new/a"]


def test_what_was_made_while_all_was_being_synced_is_not_taken_for_synced(tmp_path, synced, monkeypatch):
    files = SystemFiles()
    files.open(f"{tmp_path}/before", create=True)

    def syncfs(_):
        files.open(f"{tmp_path}/meanwhile", create=True)
        return 0

    monkeypatch.setattr(door, "_syncfs", syncfs)
    files.sync_below(str(tmp_path))
    files.open(f"{tmp_path}/before").sync()
    assert synced == []
    files.open(f"{tmp_path}/meanwhile").sync()
    assert synced == [f"{tmp_path}/meanwhile"]


def test_directories_whose_names_begin_alike_are_others():
    names = Unlisted()
    names.add("/d/t-1/a")
    names.add("/d/t-10/a")
    names.remove("/d/t-1")
    assert "/d/t-1/a" not in names
    assert "/d/t-10/a" in names
    assert names.below("/d/t") == []
    assert names.below("/d") == [("/d/t-10", frozenset({"a"}))]


def test_nothing_is_kept_of_files_that_are_on_disk():
    names = Unlisted()
    names.add("/d/a")
    names.discard("/d/a")
    names.discard("/d/a")
    assert not names


def test_a_rename_or_removal_does_not_look_at_the_files_of_others():
    class Others(dict):
        def looked_at(self, *_):
            raise AssertionError("walks through all directories")

        __iter__ = items = keys = values = looked_at

    names = Unlisted()
    for number in range(10):
        names.add(f"/d/t-{number}/a")
    names._names = Others(names._names)
    names.move("/d/t-1/a", "/d/t-1/b")
    names.move("/d/t-2", "/d/gone")
    names.remove("/d/t-3")
    names.discard("/d/t-4/a")
    assert [path in names for path in ("/d/t-1/b", "/d/gone/a", "/d/t-3/a", "/d/t-4/a")] == [True, True, False, False]
