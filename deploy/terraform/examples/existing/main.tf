# A topic in an instance that somebody else manages, and one that was there before. The same test applies it.

terraform {
  required_providers {
    sluice = {
      source  = "terraform.local/sluice/sluice"
      version = "0.1.0"
    }
  }
}

provider "sluice" {}

data "sluice_instance" "shared" {
  name = "shared"
}

data "sluice_zones" "all" {}

resource "sluice_topic" "mine" {
  instance_id = data.sluice_instance.shared.id
  name        = "mine"
}

import {
  to = sluice_topic.there_before
  id = "${data.sluice_instance.shared.id}/there-before"
}

resource "sluice_topic" "there_before" {
  instance_id = data.sluice_instance.shared.id
  name        = "there-before"
}

resource "sluice_user" "mine" {
  instance_id = data.sluice_instance.shared.id
  name        = "mine"
  password    = "of an example alone"
}

output "zones" {
  value = data.sluice_zones.all.taking_new
}
