// Where an installed pi lives, and how to run it.

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** pi moved to another npm scope after 0.73; both scopes have the same package names. */
const SCOPES = ["@mariozechner", "@earendil-works"];

export function findHost(hostsDir, version) {
	const modules = join(hostsDir, `pi-${version}`, "node_modules");
	const scope = SCOPES.find((name) => existsSync(join(modules, name, "pi-coding-agent", "package.json")));
	if (!scope) throw new Error(`pi ${version} is not installed; run: npm run setup`);
	const root = join(modules, scope, "pi-coding-agent");
	const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
	const needed = Number(manifest.engines?.node?.match(/\d+/)?.[0] ?? 0);
	const node22 = join(hostsDir, "node22", "node_modules", "node", "bin", "node");
	const current = Number(process.versions.node.split(".")[0]);
	const [major, minor, patch] = version.split(".").map(Number);
	return {
		version,
		scope,
		root,
		modules,
		cli: join(root, manifest.bin.pi),
		node: current >= needed || !existsSync(node22) ? process.execPath : node22,
		// agent_settled came with 0.80.4.
		hasSettled: major > 0 || minor > 80 || (minor === 80 && patch >= 4),
	};
}

/** Installs pi, and the Node that it needs, from the lock files beside it; once. */
export function installHosts(hostsDir, versions) {
	const folders = versions.map((version) => [`pi-${version}`, ["--ignore-scripts"]]);
	if (Number(process.versions.node.split(".")[0]) < 22) folders.push(["node22", []]);
	for (const [folder, flags] of folders) {
		if (existsSync(join(hostsDir, folder, "node_modules"))) continue;
		execFileSync("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error", ...flags], { cwd: join(hostsDir, folder), stdio: "inherit" });
	}
}
