"""Django's settings. What differs between installations comes from the environment: see env.py."""

from __future__ import annotations

import os
from importlib.metadata import distribution
from typing import Any

from django.core.management.utils import get_random_secret_key

from controlplane import catalogues
from controlplane.env import ROOT, Environment

ENVIRONMENT = Environment.read(os.environ)

DEBUG = ENVIRONMENT.debug
# A key of its own per process when none is given: sessions then do not outlive it, but none can be forged.
SECRET_KEY = ENVIRONMENT.secret_key or ENVIRONMENT.secret("django_secret_key") or get_random_secret_key()
SECRET_KEY_FALLBACKS = ENVIRONMENT.accepted_secret_keys()
ALLOWED_HOSTS = list(ENVIRONMENT.allowed_hosts)

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
    "controlplane.core",
    "controlplane.mail",
    "controlplane.accounts",
    "controlplane.tenants",
    "controlplane.clusters",
    "controlplane.certificates",
    "controlplane.instances",
    "controlplane.routes",
    "controlplane.topics",
    "controlplane.schemas",
    "controlplane.token_issuers",
    "controlplane.sso",
    "controlplane.admission",
    "controlplane.metering",
    "controlplane.quotas",
    "controlplane.remedies",
    "controlplane.health",
    "controlplane.history",
    "controlplane.alarms",
    "controlplane.rebalancing",
    "controlplane.fleet",
    "controlplane.idempotency",
    "controlplane.billing",
    "controlplane.budgets",
    "controlplane.policies",
    "controlplane.loads",
    "controlplane.organisations",
    "drf_spectacular_sidecar",
    "controlplane.console",
    "controlplane.stack",
]

MIDDLEWARE = [
    "controlplane.core.origin.OriginMiddleware",
    "controlplane.api.rates.RateLimitMiddleware",
    "controlplane.api.deprecation.DeprecationMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "controlplane.ckafka_api.middleware.CkafkaAtRootMiddleware",
    "controlplane.console.middleware.LanguageMiddleware",  # before whoever answers: a thread keeps its last language
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "controlplane.console.single_sign_on.SingleSignOnMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "controlplane.idempotency.middleware.IdempotencyMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "controlplane.console.middleware.ConsoleMiddleware",
]

ROOT_URLCONF = "controlplane.urls"
WSGI_APPLICATION = "controlplane.wsgi.application"
APPEND_SLASH = False  # a redirect turns a POST into a GET

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.messages.context_processors.messages",
                "django.template.context_processors.i18n",
                "controlplane.console.shell.shell",
            ],
            "builtins": ["django.templatetags.i18n", "controlplane.console.templatetags.console"],
        },
    }
]

DATABASES: dict[str, dict[str, Any]] = {"default": ENVIRONMENT.database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "accounts.User"
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator",
        "OPTIONS": {"user_attributes": ("email", "name")},
    },
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

# Pages are in the language that a person chose (a cookie) or the browser asks for, mails in the account's: see core/wording.py.
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
USE_I18N = True
LOCALE_PATHS = [catalogues.compiled(ROOT / "controlplane" / "locale", ENVIRONMENT.stack_dir / "locale")]
LANGUAGE_COOKIE_NAME = "language"
LANGUAGE_COOKIE_AGE = 365 * 24 * 3600
LANGUAGE_COOKIE_HTTPONLY = True
LANGUAGE_COOKIE_SAMESITE = "Lax"
LANGUAGE_COOKIE_SECURE = ENVIRONMENT.tls
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "static/"
CHARTJS = "unfold/static/unfold/js/chart"
STATICFILES_DIRS = [("chartjs", str(distribution("django-unfold").locate_file(CHARTJS)))]
"""Chart.js and its licence, of a package that is no app here: static/chartjs/chart.js."""
WHITENOISE_USE_FINDERS = True  # no collectstatic step before the first start
SECURE_CONTENT_TYPE_NOSNIFF = True
SESSION_ENGINE = "controlplane.accounts.identity.engine"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_HTTPONLY = True  # forms carry the token themselves; no script needs it
CSRF_COOKIE_SAMESITE = "Lax"
if ENVIRONMENT.tls:
    SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
    SECURE_SSL_REDIRECT = True
    SECURE_REDIRECT_EXEMPT = ["^health(/|$)", "^metrics$"]  # asked for past the proxy, by what watches this process
    SECURE_HSTS_SECONDS = 365 * 24 * 3600
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
# This host decides for itself only: whether all hosts below its name, or whoever is below its domain, speak HTTPS alone is for
# who owns the domain to say, at the proxy.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
CSRF_FAILURE_VIEW = "controlplane.console.views.errors.csrf_failure"
LOGIN_URL = "console:sign_in"

# What all web processes must know of each other, and may forget: attempts to sign in.
CACHES = {
    "default": {
        "BACKEND": "controlplane.core.caching.CarefulRedisCache",
        "LOCATION": ENVIRONMENT.redis_url,
        "KEY_PREFIX": "sluice",
        "OPTIONS": {"socket_connect_timeout": 1, "socket_timeout": 1},
    }
}

_MAIL = ENVIRONMENT.mail()
EMAIL_HOST, EMAIL_PORT, EMAIL_TIMEOUT = _MAIL["HOST"], _MAIL["PORT"], _MAIL["TIMEOUT"]
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _MAIL["HOST_USER"], _MAIL["HOST_PASSWORD"]
EMAIL_USE_TLS, EMAIL_USE_SSL = _MAIL["USE_TLS"], _MAIL["USE_SSL"]
DEFAULT_FROM_EMAIL = ENVIRONMENT.email_from or "sluice@localhost"

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["controlplane.accounts.authentication.ApiKeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["controlplane.accounts.permissions.RolePermission"],
    "DEFAULT_PARSER_CLASSES": ["controlplane.api.parsers.BoundedJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "controlplane.api.negotiation.AlwaysJSON",
    "DEFAULT_SCHEMA_CLASS": "controlplane.api.schema.ProblemAwareSchema",
    "EXCEPTION_HANDLER": "controlplane.accounts.denials.exception_handler",
    "UNAUTHENTICATED_USER": None,
}

SPECTACULAR_SETTINGS = {
    "TITLE": "Sluice",
    "DESCRIPTION": "Kafka as a multi-tenant managed service. Sizes and rates are named with their units; "
    "errors are application/problem+json with a stable `code`. Requests are limited by API key and by organisation, reads "
    "and changes apart: answers say in `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset` (seconds) what is left. "
    "Names of groups, members, users and transactional ids may hold anything: in an address a name with a `/`, `.`, `..`, or one "
    "that begins with `~` is written as `~` and its UTF-8 in base64url without `=` (`a/b` is `~YS9i`); any other may be.",
    "VERSION": "1.0.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "SERVE_AUTHENTICATION": [],
    "SERVE_PERMISSIONS": [],
    "COMPONENT_SPLIT_REQUEST": True,
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "controlplane.api.schema.rate_limits_postprocess",
        "controlplane.api.examples.making.examples_postprocess",
    ],
    "ENUM_NAME_OVERRIDES": {
        "SearchKindEnum": "controlplane.search.serializers.KIND_CHOICES",
        "RoleEnum": "controlplane.tenants.models.Role",
        "RoleScopeLookEnum": "controlplane.accounts.custom_roles.LOOK_CHOICES",
        "RoleScopeChangeEnum": "controlplane.accounts.custom_roles.CHANGE_CHOICES",
        "RoleScopePartEnum": "controlplane.accounts.custom_roles.PART_CHOICES",
        "OrganisationStateEnum": "controlplane.organisations.serializers.STATE_CHOICES",
        "OrganisationObstacleEnum": "controlplane.organisations.serializers.OBSTACLE_CHOICES",
        "ServiceAccountRoleEnum": "controlplane.accounts.service_accounts.ROLE_CHOICES",
        "TopicConfigSourceEnum": "controlplane.topics.configs.SOURCES",
        "TopicHintEnum": "controlplane.topic_insights.hints.CODES",
        "TopicHintLevelEnum": "controlplane.topic_insights.hints.LEVELS",
        "TopicUnknownEnum": "controlplane.topic_insights.figures.PARTS",
        "OperationStateEnum": "controlplane.core.models.OperationState",
        "LoadStateEnum": "controlplane.loads.serializers.STATES",
        "LoadFormatEnum": "controlplane.loads.serializers.FORMATS",
        "FormatEnum": "controlplane.schemas.serializers.FORMATS",
        "StepStateEnum": "controlplane.core.models.StepState",
        "InstanceStateEnum": "controlplane.instances.models.InstanceState",
        "RouteMechanismEnum": "controlplane.routes.validation.MECHANISMS",
        "HealthStateEnum": "controlplane.health.rules.HEALTH_STATES",
        "KindEnum": "controlplane.throttle_rules.serializers.KINDS",
        "QuotaReportDayResourceEnum": "controlplane.what_if.rules.RESOURCES",
        "BudgetAlertKindEnum": "controlplane.budgets.rules.KINDS",
        "LoadKindEnum": "controlplane.loads.serializers.KINDS",
        "ElasticStateEnum": "controlplane.admission.elastic.STATES",
        "PrepaidStateEnum": "controlplane.admission.prepaid.STATES",
        "PrepaidAtEndEnum": "controlplane.billing.pricing.prepaid.AT_END",
        "PrepaidChargeKindEnum": "controlplane.billing.pricing.prepaid.CHARGES",
        "BillStateEnum": "controlplane.billing.waiting.STATES",
        "AlarmWatchEnum": "controlplane.alarms.rules.WATCHED",
        "AlarmComparisonEnum": "controlplane.alarms.rules.COMPARISONS",
        "AlarmMissingEnum": "controlplane.alarms.rules.MISSINGS",
        "AlarmStateEnum": "controlplane.alarms.machine.PHASES",
        "AlarmEventKindEnum": "controlplane.alarms.machine.EVENT_KINDS",
        "InstanceEventKindEnum": "controlplane.alarms.events.KINDS",
        "BalanceModeEnum": "controlplane.rebalancing.models.BalanceMode",
        "RoomResourceEnum": "controlplane.admission.rules.RESOURCES",
        "FleetBrokerStateEnum": "controlplane.fleet.listing.BROKER_STATES",
        "FleetOrganisationStateEnum": "controlplane.fleet.listing.ORGANISATION_STATES",
        "FleetProblemKindEnum": "controlplane.fleet.problems.KINDS",
        "ClusterStateEnum": "controlplane.clusters.models.ClusterState",
        "ClusterDecisionEnum": "controlplane.admission.cluster_serializers.DECISIONS",
        "RebalanceStateEnum": "controlplane.rebalancing.models.RebalanceState",
        "RebalanceMoveStateEnum": "controlplane.rebalancing.models.MoveState",
        "RebalanceActionEnum": "controlplane.rebalancing.serializers.ACTIONS",
        "RebalanceGoalEnum": "controlplane.rebalancing.serializers.GOALS",
        "ReceiverKindEnum": "controlplane.alarms.models.ReceiverKind",
        "DeliveryKindEnum": "controlplane.alarms.models.DeliveryKind",
        "DeliveryStateEnum": "controlplane.alarms.models.DeliveryState",
        "AclOperationEnum": "controlplane.access.words.OPERATIONS",
        "AclPermissionEnum": "controlplane.access.words.PERMISSIONS",
        "AclResourceTypeEnum": "controlplane.access.words.RESOURCE_TYPES",
        "AclPatternTypeEnum": "controlplane.access.words.PATTERN_TYPES",
        "AclFilterOperationEnum": "controlplane.access.words.FILTER_OPERATIONS",
        "AclFilterPermissionEnum": "controlplane.access.words.FILTER_PERMISSIONS",
        "AclFilterResourceTypeEnum": "controlplane.access.words.FILTER_RESOURCE_TYPES",
        "AclFilterPatternTypeEnum": "controlplane.access.words.FILTER_PATTERN_TYPES",
    },
}

CELERY_BROKER_URL = ENVIRONMENT.redis_url
CELERY_RESULT_BACKEND = None
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True  # a killed worker's message is delivered again; operations are claimed from the database
CELERY_TASK_DEFAULT_QUEUE = "sluice"
CELERY_WORKER_CONCURRENCY = ENVIRONMENT.workers
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# Short: a message is only a wake-up, and a web request must not wait for a Redis that is away.
CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_connect_timeout": 1, "socket_timeout": 5, "max_retries": 0}
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULE_FILENAME = str(ENVIRONMENT.stack_dir / "beat-schedule")
CELERY_BEAT_SCHEDULE = {
    # Each message expires before the next two are due, so that a worker that was away does not find a heap of them.
    "offer operations": {"task": "core.operations_offer", "schedule": 2.0, "options": {"expires": 4}},
    "say that a worker is there": {"task": "core.pulse", "schedule": 2.0, "options": {"expires": 4}},
    "seal the audit trail": {"task": "core.audit_seal", "schedule": 10.0, "options": {"expires": 20}},
    "read what Kafka clients change": {
        "task": "instances.kafka_changes_read",
        "schedule": 10.0,
        "options": {"expires": 20},
    },
    "reconcile instances": {"task": "instances.reconcile", "schedule": 5.0, "options": {"expires": 10}},
    "observe health": {"task": "health.observe", "schedule": 5.0, "options": {"expires": 10}},
    "evaluate alarms": {"task": "alarms.evaluate", "schedule": 30.0, "options": {"expires": 60}},
    "join throttled intervals": {"task": "alarms.throttling", "schedule": 30.0, "options": {"expires": 60}},
    "send messages of alarms": {"task": "alarms.send", "schedule": 5.0, "options": {"expires": 10}},
    "send mails": {"task": "mail.send", "schedule": 2.0, "options": {"expires": 4}},
    "purge mails": {"task": "mail.purge", "schedule": 600.0, "options": {"expires": 600}},
    "answer at the door": {"task": "accounts.door", "schedule": 2.0, "options": {"expires": 4}},
    "keep accounts up": {"task": "accounts.keep_up", "schedule": 600.0, "options": {"expires": 600}},
    "keep alarms up": {"task": "alarms.keep_up", "schedule": 600.0, "options": {"expires": 600}},
    "ask who moves most": {"task": "remedies.witnesses_take", "schedule": 15.0, "options": {"expires": 15}},
    "keep how brokers spent minutes": {"task": "remedies.minutes_take", "schedule": 30.0, "options": {"expires": 30}},
    "purge who moved most": {"task": "remedies.purge", "schedule": 600.0, "options": {"expires": 600}},
    "pull throttling": {"task": "quotas.throttling_pull", "schedule": 10.0, "options": {"expires": 20}},
    # Twice as often as there is to be a sample: the second one of the same ten seconds finds it there and asks nobody.
    "sample history": {"task": "history.sample", "schedule": 5.0, "options": {"expires": 10}},
    # As often as that: a window of ten seconds is asked for within five after it has settled.
    "sample requests": {"task": "history.requests_sample", "schedule": 5.0, "options": {"expires": 10}},
    # So often that a minute is looked at when it has just begun; the others find that it was.
    "sample the lag of groups": {"task": "history.lag_sample", "schedule": 10.0, "options": {"expires": 20}},
    "keep the lag of groups up": {"task": "history.lag_keep_up", "schedule": 300.0, "options": {"expires": 300}},
    "roll up history": {"task": "history.roll_up", "schedule": 60.0, "options": {"expires": 120}},
    "write history to the metrics store": {"task": "history.store_write", "schedule": 20.0, "options": {"expires": 40}},
    "keep rebalances up": {"task": "rebalancing.keep_up", "schedule": 60.0, "options": {"expires": 60}},
    "look how clusters are loaded": {"task": "rebalancing.look", "schedule": 60.0, "options": {"expires": 60}},
    "rebalance clusters by themselves": {
        "task": "rebalancing.look_after",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    # As the history: the second one of the same minute finds it there.
    "sample brokers": {"task": "fleet.sample", "schedule": 20.0, "options": {"expires": 40}},
    "purge samples of brokers": {"task": "fleet.purge", "schedule": 600.0, "options": {"expires": 600}},
    "purge history": {"task": "history.purge", "schedule": 60.0, "options": {"expires": 120}},
    "pull elastic bandwidth": {"task": "metering.elastic_pull", "schedule": 10.0, "options": {"expires": 20}},
    "purge elastic bandwidth": {"task": "metering.elastic_purge", "schedule": 3600.0, "options": {"expires": 3600}},
    "fold days of usage": {"task": "metering.days_fold", "schedule": 120.0, "options": {"expires": 120}},
    "look at elastic bandwidth": {"task": "admission.elastic_look", "schedule": 60.0, "options": {"expires": 60}},
    "purge throttling": {"task": "quotas.throttling_purge", "schedule": 600.0, "options": {"expires": 600}},
    "purge repeatable calls": {"task": "idempotency.purge", "schedule": 600.0, "options": {"expires": 600}},
    "close invoices": {"task": "billing.invoices_close", "schedule": 600.0, "options": {"expires": 600}},
    "look at budgets": {"task": "budgets.evaluate", "schedule": 300.0, "options": {"expires": 300}},
    "look at policies": {"task": "policies.evaluate", "schedule": 60.0, "options": {"expires": 60}},
    "refresh costs": {"task": "billing.costs_refresh", "schedule": 300.0, "options": {"expires": 300}},
    "refresh token issuers": {"task": "token_issuers.refresh", "schedule": 30.0, "options": {"expires": 60}},
    "renew certificates": {"task": "certificates.renew", "schedule": 3600.0, "options": {"expires": 3600}},
    "expire proposals": {"task": "instances.proposals_expire", "schedule": 60.0, "options": {"expires": 60}},
    "make scheduled changes": {
        "task": "admission.changes_carry_out",
        "schedule": 10.0,
        "options": {"expires": 20},
    },
    "look at what is paid in advance": {"task": "admission.prepaid_look", "schedule": 60.0, "options": {"expires": 60}},
    "tidy notes of topics": {"task": "topics.notes_tidy", "schedule": 600.0, "options": {"expires": 600}},
    "tidy schemas of topics": {"task": "schemas.tidy", "schedule": 600.0, "options": {"expires": 600}},
    "end grace periods": {"task": "instances.grace_periods_end", "schedule": 60.0, "options": {"expires": 60}},
    "end organisations": {"task": "organisations.look_after", "schedule": 60.0, "options": {"expires": 60}},
    "prune changes": {"task": "instances.changes_prune", "schedule": 300.0, "options": {"expires": 300}},
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {
        "not each tick": {"()": "controlplane.core.logs.NotEachTick"},
        "of which request": {"()": "controlplane.core.origin.WithRequestId"},
    },
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(request)s%(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["of which request"]}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        "kazoo": {"level": "WARNING"},
        "django.request": {"level": "ERROR"},
        # A line for each task that came, and for each that went well, is two lines a second of an idle worker.
        "celery.worker.strategy": {"level": "WARNING"},
        "celery.app.trace": {"level": "WARNING"},
        "celery.beat": {"filters": ["not each tick"]},
    },
}

PROJECT_ROOT = ROOT
