"""How a tenant reads the table of a load: by which programs, with its address and where its bucket is. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from controlplane.loads.destinations import AWS, BUCKET_READING, FOLDER_READING, PARQUET_READING, Format, Kind

HADOOP_PACKAGE = "org.apache.hadoop:hadoop-aws:3.4.1"
"""That Spark 4.0.0 needs to read from a bucket: of the version that this Spark has of Hadoop."""
SPARK_PACKAGES = f"io.delta:delta-spark_2.13:4.0.0,{HADOOP_PACKAGE}"
"""And to read a Delta table from one."""
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


@dataclass(frozen=True, slots=True)
class Reading:
    """How a tenant reads what was loaded: in a sentence, and as programs where it can be read."""

    how: str
    spark: str = ""
    python: str = ""


def reading(kind: str, uri: str, region: str, store: str, form: str = Format.DELTA) -> Reading:
    """Of a load. `store`: as operators have set it for buckets (AWS, or an endpoint); `form`: the load's format."""
    if kind != Kind.BUCKET:
        return Reading(FOLDER_READING)
    if form == Format.PARQUET:
        return _parquet(uri, region, store)
    options = {"AWS_REGION": region, "AWS_ACCESS_KEY_ID": "…", "AWS_SECRET_ACCESS_KEY": "…"}
    configured = {"spark.hadoop.fs.s3a.endpoint.region": region}
    if store != AWS:
        options["AWS_ENDPOINT_URL"] = configured["spark.hadoop.fs.s3a.endpoint"] = store
        configured["spark.hadoop.fs.s3a.path.style.access"] = "true"
    if store.startswith("http:"):
        options["AWS_ALLOW_HTTP"] = "true"
    said = ", ".join(f'"{name}": "{value}"' for name, value in options.items())
    words = "".join(f" \\\n  --conf {name}={value}" for name, value in (DELTA | configured).items())
    address = uri.replace("s3:", "s3a:", 1)
    return Reading(
        BUCKET_READING,
        "export AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=…\n"
        f'pyspark --packages {SPARK_PACKAGES}{words}\n\nspark.read.format("delta").load("{address}").show()',
        f'from deltalake import DeltaTable\n\nDeltaTable("{uri}", storage_options={{{said}}}).to_pyarrow_table()',
    )


def _parquet(uri: str, region: str, store: str) -> Reading:
    configured = {"spark.hadoop.fs.s3a.endpoint.region": region}
    where = {"region": region, "access_key": "…", "secret_key": "…"}
    if store != AWS:
        split = urlsplit(store)
        where |= {"endpoint_override": split.netloc, "scheme": split.scheme}
        configured |= {"spark.hadoop.fs.s3a.endpoint": store, "spark.hadoop.fs.s3a.path.style.access": "true"}
    words = "".join(f" \\\n  --conf {name}={value}" for name, value in configured.items())
    said = ", ".join(f'{name}="{value}"' for name, value in where.items())
    address, path = uri.replace("s3:", "s3a:", 1), uri.removeprefix("s3://")
    return Reading(
        PARQUET_READING,
        "export AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=…\n"
        f'pyspark --packages {HADOOP_PACKAGE}{words}\n\nspark.read.parquet("{address}").show()',
        "from pyarrow import dataset, fs\n\n"
        f'dataset.dataset("{path}", format="parquet", filesystem=fs.S3FileSystem({said})).to_table()',
    )
