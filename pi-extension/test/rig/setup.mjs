#!/usr/bin/env node
// Installs the versions of pi that the tests run, from the lock files in hosts/.
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { installHosts } from "./lib/hosts.mjs";

export const VERSIONS = ["0.73.1", "1.6.0"];
installHosts(join(dirname(fileURLToPath(import.meta.url)), "hosts"), VERSIONS);
