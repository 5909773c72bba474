"""How a tenant is told to read a table: with its address, and where its bucket is."""

from __future__ import annotations

import ast
import re

import pytest

from controlplane.loads.destinations import AWS, Format, Kind
from controlplane.loads.reading import reading

URI = "s3://events-1/lake/orders/load-1"


def test_a_folder_of_the_service_is_read_by_nobody_else_and_a_bucket_is_the_way():
    said = reading(Kind.FOLDER, "file:/lake/org/ins/load-1", "", AWS)
    assert "Only the service can read this folder" in said.how
    assert "bucket" in said.how
    assert (said.spark, said.python) == ("", "")


def test_a_bucket_at_amazon():
    said = reading(Kind.BUCKET, URI, "eu-central-1", AWS)
    assert 'load("s3a://events-1/lake/orders/load-1")' in said.spark
    assert "spark.hadoop.fs.s3a.endpoint.region=eu-central-1" in said.spark
    assert "s3a.endpoint=" not in said.spark
    ast.parse(said.python)
    assert options_of(said.python) == {
        "AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "…", "AWS_SECRET_ACCESS_KEY": "…",
    }  # fmt: skip


def test_a_bucket_in_another_store():
    said = reading(Kind.BUCKET, URI, "us-east-1", "http://127.0.0.1:5000")
    assert "--conf spark.hadoop.fs.s3a.endpoint=http://127.0.0.1:5000" in said.spark
    assert options_of(said.python).items() >= {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:5000", "AWS_ALLOW_HTTP": "true",
    }.items()  # fmt: skip


@pytest.mark.parametrize("store", [AWS, "http://127.0.0.1:5000"])
def test_files_of_parquet_need_no_reader_of_delta(store):
    said = reading(Kind.BUCKET, URI, "eu-central-1", store, Format.PARQUET)
    assert 'spark.read.parquet("s3a://events-1/lake/orders/load-1")' in said.spark
    assert "delta" not in (said.spark + said.python).lower()
    ast.parse(said.python)
    assert 'dataset("events-1/lake/orders/load-1", format="parquet"' in said.python
    assert ("127.0.0.1:5000" in said.spark and "127.0.0.1:5000" in said.python) == (store != AWS)


def options_of(program):
    return ast.literal_eval(re.search(r"storage_options=(\{.*\})", program)[1])
