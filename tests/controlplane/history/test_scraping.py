"""A tenant's Prometheus is told one address and a configuration that reads it, wherever this service is reached."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_network

import pytest
import yaml

from controlplane.history.scraping import BY_CERTIFICATE, KEY_FILE, scraping_of
from tests.controlplane.test_instances_api import URL

ONE = "ins-k3v9x2qa"
PATH = f"/api/v1/instances/{ONE}/prometheus"


@pytest.mark.parametrize(
    ("base", "scheme", "path", "target"),
    [
        ("https://kafka.example.com", "https", PATH, "kafka.example.com"),
        ("https://kafka.example.com/", "https", PATH, "kafka.example.com"),
        ("http://10.0.0.7:8000", "http", PATH, "10.0.0.7:8000"),
        ("https://example.com/kafka", "https", f"/kafka{PATH}", "example.com"),
        ("http://[::1]:8000/", "http", PATH, "[::1]:8000"),
    ],
)
def test_the_configuration_leads_to_the_address(base, scheme, path, target):
    found = scraping_of(base, ONE)
    assert found.url == f"{scheme}://{target}{path}"
    (job,) = yaml.safe_load(found.config)["scrape_configs"]
    assert (job["scheme"], job["metrics_path"], job["static_configs"]) == (scheme, path, [{"targets": [target]}])
    assert job["authorization"] == {"credentials_file": KEY_FILE}
    assert (job["job_name"], job["scrape_interval"]) == (f"sluice-{ONE}", "15s")


def test_a_client_certificate_stands_in_place_of_the_key():
    base = "https://kafka.example.com"
    (by_key,), (by_certificate,) = (
        yaml.safe_load(found.config)["scrape_configs"]
        for found in (scraping_of(base, ONE), scraping_of(base, ONE, BY_CERTIFICATE))
    )
    del by_key["authorization"]
    assert by_certificate.pop("tls_config") == {
        "cert_file": "/etc/prometheus/sluice-client.pem",
        "key_file": "/etc/prometheus/sluice-client.key",
    }
    assert by_certificate == by_key


def test_a_configuration_by_certificate_is_given_where_the_service_takes_certificates(alice, instance, settings):
    url = f"{URL}/{instance.id}/scrape-config"
    refused = alice.api.get(url, {"by": "certificate"})
    assert (refused.status_code, refused.json()["code"]) == (409, "client_certificates_not_taken")
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, client_certificates_from=(ip_network("10.3.0.0/24"),))
    given = alice.api.get(url, {"by": "certificate"})
    assert "cert_file" in given.content.decode()
    assert alice.api.get(url, {"by": "key"}).content == alice.api.get(url).content
    assert alice.api.get(url, {"by": "password"}).status_code == 400


@pytest.fixture
def said(settings):
    def said(**urls):
        settings.ENVIRONMENT = replace(settings.ENVIRONMENT, **{"scrape_url": "", "console_url": "", **urls})

    said()
    return said


def target(api, instance):
    answer = api.get(f"{URL}/{instance.id}/scrape-config")
    assert (answer.status_code, answer["Content-Type"]) == (200, "text/plain; charset=utf-8")
    (job,) = yaml.safe_load(answer.content)["scrape_configs"]
    assert job["metrics_path"].endswith(f"/instances/{instance.id}/prometheus")
    return job["static_configs"][0]["targets"]


def test_the_address_is_that_of_metrics_or_of_the_console_or_the_one_that_was_asked(viewer, instance, said):
    assert target(viewer.api, instance) == ["testserver"]
    said(console_url="https://console.example.com")
    assert target(viewer.api, instance) == ["console.example.com"]
    said(console_url="https://console.example.com", scrape_url="https://metrics.example.com")
    assert target(viewer.api, instance) == ["metrics.example.com"]


def test_what_it_leads_to_is_there(alice, instance, said):
    (job,) = yaml.safe_load(alice.api.get(f"{URL}/{instance.id}/scrape-config").content)["scrape_configs"]
    assert alice.api.get(job["metrics_path"]).status_code == 200


def test_another_organisations_is_not_there(charlie, instance, said):
    foreign = charlie.api.get(f"{URL}/{instance.id}/scrape-config")
    missing = charlie.api.get(f"{URL}/{ONE}/scrape-config")
    assert (foreign.status_code, missing.status_code) == (404, 404)
    assert foreign.content.replace(instance.id.encode(), b"ID") == missing.content.replace(ONE.encode(), b"ID")
