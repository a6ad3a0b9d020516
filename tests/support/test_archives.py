"""Archives: refused before they are unpacked where they ask for more memory than they may."""

import gzip
import io
import zipfile

import numpy as np
import pytest

from micrograd._support import archives
from micrograd._support.files import read_text


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


def with_size(data, size):
    """An archive that claims another size for each of its parts, where it lists them."""
    position = data.index(b"PK\x01\x02")
    return data[: position + 24] + size.to_bytes(4, "little") + data[position + 28 :]


def test_an_array_that_claims_more_than_there_is_is_refused():
    archives.check_array("weights", array())
    with pytest.raises(ValueError, match=r"an array of shape \(99999999, 99999\) is more than there is in weights"):
        archives.check_array("weights", widened(array()))
    with pytest.raises(ValueError, match="magic string is not correct"):
        archives.check_array("other", b"{}" * 40)


@pytest.mark.parametrize("shape", [(10_000_000, 0), (0, 10_000_000), (3, 0)])
def test_an_empty_side_hides_no_long_one(shape):
    file = io.BytesIO()
    np.save(file, np.zeros(shape))
    with pytest.raises(ValueError, match="is more than there is"):
        archives.check_array("weights", file.getvalue())
    archives.check_array("weights", array(0))


def test_another_version_of_the_format_is_refused():
    file = io.BytesIO()
    np.lib.format.write_array(file, np.ones(3), version=(2, 0))
    with pytest.raises(ValueError, match=r"weights is an array in version \(2, 0\) of NumPy's format"):
        archives.check_array("weights", file.getvalue())


def test_parts_are_unpacked_and_packed_again():
    parts = {"schema": b"{}", "weights": array(1_000)}
    assert archives.unpacked(archive(**parts)) == parts == archives.unpacked(archives.packed(parts))
    with pytest.raises(zipfile.BadZipFile):
        archives.unpacked(b"PK")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_what_unpacks_to_any_number_of_bytes_at_a_time_is_refused(method):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as made:
        made.writestr("weights", bytes(1_000_000))
    with pytest.raises(ValueError, match="weights is neither stored nor deflated"):
        archives.unpacked(with_size(file.getvalue(), 10))


@pytest.mark.parametrize("claimed", [10, 1_500_000, 2**32 - 2])
def test_bytes_are_counted_whatever_the_headers_claim(monkeypatch, claimed):
    monkeypatch.setenv("MICROGRAD_UNPACKED_MB", "1")
    with pytest.raises((ValueError, zipfile.BadZipFile), match=r"unpacks to more than 1,000,000 bytes|Bad CRC"):
        archives.unpacked(with_size(archive(weights=bytes(1_500_000)), claimed))


def test_the_parts_count_together_and_the_limit_can_be_raised(monkeypatch):
    data = archive(one=bytes(700_000), other=bytes(700_000))
    monkeypatch.setenv("MICROGRAD_UNPACKED_MB", "1")
    with pytest.raises(ValueError, match="more than 1,000,000 bytes: if you trust it, set MICROGRAD_UNPACKED_MB"):
        archives.unpacked(data)
    monkeypatch.setenv("MICROGRAD_UNPACKED_MB", "2")
    assert len(archives.unpacked(data)) == 2


@pytest.mark.parametrize("said", ["", "0", "-1", "1e3", "much", "²"])
def test_a_limit_is_a_positive_integer(monkeypatch, said):
    monkeypatch.setenv("MICROGRAD_UNPACKED_MB", said)
    with pytest.raises(ValueError, match="MICROGRAD_UNPACKED_MB must be a positive integer"):
        archives.unpacked(archive(weights=array()))


def test_two_parts_of_one_name_are_refused_and_more_than_there_may_be(monkeypatch):
    twice = archive(one=b"1", two=b"2").replace(b"two", b"one")
    with pytest.raises(ValueError, match="it has two parts named one"):
        archives.unpacked(twice)
    monkeypatch.setattr(archives, "MOST_PARTS", 1)
    with pytest.raises(ValueError, match="it has more than 1 parts"):
        archives.unpacked(archive(one=b"1", two=b"2"))


def test_json_of_very_many_lists_is_refused_before_it_is_read():
    archives.check_nodes(b"[" + b"[]," * 1_000_000 + b"1]")
    with pytest.raises(ValueError, match="holds more than 4,000,000 lists, dicts and elements: if you trust it"):
        archives.check_nodes(b"[" + b"[]," * 5_000_000 + b"1]")


def test_a_gzipped_table_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 400_000) + gzip.compress(b"3,4\n" * 10))
    assert len(read_text(path)) == 1_600_044
    monkeypatch.setenv("MICROGRAD_UNPACKED_MB", "1")
    with pytest.raises(ValueError, match="it unpacks to more than 1,000,000 bytes: if you trust it"):
        read_text(path)
