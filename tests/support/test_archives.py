"""Archives: refused before they are unpacked where they ask for more memory than they may."""

import io
import zipfile

import numpy as np
import pytest

from micrograd._support import archives


def widened(array):
    """An array of NumPy, in a file, whose header claims that it is huge."""
    file = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (99_999_999, 99_999)}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + array[-80:]


def archive(**parts):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in parts.items():
            made.writestr(name, data)
    return file.getvalue()


def array(count=10):
    file = io.BytesIO()
    np.save(file, np.ones(count))
    return file.getvalue()


def test_an_array_that_claims_more_than_there_is_is_refused_whatever_it_is_called():
    archives.check_archive(archive(schema=b"{}", weights=array()), "schema")
    with pytest.raises(ValueError, match=r"an array of shape \(99999999, 99999\) is more than there is in weights"):
        archives.check_archive(archive(schema=b"{}", weights=widened(array())), "schema")
    with pytest.raises(ValueError, match="magic string is not correct"):
        archives.check_archive(archive(schema=b"{}", other=b"{}" * 40), "schema")


def test_a_file_that_unpacks_to_too_much_is_refused_and_one_that_is_no_archive(monkeypatch):
    monkeypatch.setattr(archives, "MOST_UNPACKED", 1_000)
    archives.check_archive(archive(schema=b"{}", weights=array()), "schema")
    with pytest.raises(ValueError, match="it unpacks to 8,130 bytes, and 1,000 are the most"):
        archives.check_archive(archive(schema=b"{}", weights=array(1_000)), "schema")
    with pytest.raises(zipfile.BadZipFile):
        archives.check_archive(b"PK", "schema")
