# An instance with everything in it. tests/controlplane/terraform/test_by_terraform.py plans, applies, changes and destroys it.

terraform {
  required_providers {
    sluice = {
      source  = "terraform.local/sluice/sluice"
      version = "0.1.0"
    }
  }
}

# The address and the key are in the environment: SLUICE_URL, SLUICE_API_KEY.
provider "sluice" {}

variable "bandwidth_mib_per_s" {
  type    = number
  default = 5
}

variable "partitions" {
  description = "of the topic"
  type        = number
  default     = 3
}

variable "protected" {
  type    = bool
  default = false
}

variable "password" {
  type      = string
  sensitive = true
}

variable "password_version" {
  type    = number
  default = 1
}

resource "sluice_instance" "orders" {
  name                = "orders"
  bandwidth_mib_per_s = var.bandwidth_mib_per_s
  storage_gib         = 10.5
  partitions          = 60
  deletion_protection = var.protected

  config = {
    auto_create_topics             = false
    allow_everyone_if_no_acl_found = false
  }

  maintenance_window = {
    day          = "sunday"
    hour_utc     = 3
    length_hours = 4
  }

  timeouts = {
    create = "10m"
  }
}

resource "sluice_whitelist" "orders" {
  instance_id = sluice_instance.orders.id
  cidrs       = ["10.0.0.0/8", "192.168.1.7"]
}

resource "sluice_topic" "lines" {
  instance_id        = sluice_instance.orders.id
  name               = "lines"
  partitions         = var.partitions
  replication_factor = 3
  note               = "Lines of orders, by customer."
  tags               = ["orders", "billing"]

  config = {
    "retention.ms"   = "86400000"
    "cleanup.policy" = "delete"
  }
}

resource "sluice_whitelist" "lines" {
  instance_id = sluice_instance.orders.id
  topic       = sluice_topic.lines.name
  cidrs       = ["10.1.0.0/16"]
}

# Terraform 1.11, OpenTofu 1.11 or later. Earlier ones: password = var.password, which the state keeps.
resource "sluice_user" "billing" {
  instance_id         = sluice_instance.orders.id
  name                = "billing"
  password_wo         = var.password
  password_wo_version = var.password_version
  keep_previous_s     = 3600
}

resource "sluice_acl" "billing_reads" {
  for_each      = toset(["READ", "DESCRIBE"])
  instance_id   = sluice_instance.orders.id
  principal     = "User:${sluice_user.billing.name}"
  operation     = each.key
  resource_type = "TOPIC"
  resource_name = sluice_topic.lines.name
}

resource "sluice_throttle_rule" "billing" {
  instance_id       = sluice_instance.orders.id
  kind              = "client"
  users             = [sluice_user.billing.name]
  consume_mib_per_s = 2.5
}

output "bootstrap" {
  value = sluice_instance.orders.bootstrap
}
