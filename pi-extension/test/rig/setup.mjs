#!/usr/bin/env node
// Installs the versions of pi that the tests run, from the lock files in hosts/.
import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { installHosts } from "./lib/hosts.mjs";
import { hasTmux } from "./lib/terminal.mjs";

export const VERSIONS = ["0.73.1", "1.6.0"];
installHosts(join(dirname(fileURLToPath(import.meta.url)), "hosts"), VERSIONS);

// Without tmux the tests of the terminal are skipped; CI does not skip any.
if (process.env.CI && !hasTmux()) {
	const apt = (...args) => spawnSync("apt-get", args, { stdio: "inherit" }).status === 0;
	if (!apt("install", "-y", "tmux")) apt("update") && apt("install", "-y", "tmux");
}
