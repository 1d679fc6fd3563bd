// The package as it is shipped: packed, unpacked on a machine without Rust, jco and network, and used.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { findHost } from "../rig/lib/hosts.mjs";
import { environment, readScript } from "../rig/rig.mjs";
import { EXTENSION, ofKind, play, VERSIONS } from "./checks.mjs";

const HOSTS = fileURLToPath(new URL("../rig/hosts", import.meta.url));

/** Packs what was built and unpacks it elsewhere. */
function unpacked(t) {
	const folder = mkdtempSync(join(tmpdir(), "decant-pack-"));
	t.after(() => rmSync(folder, { recursive: true, force: true }));
	execFileSync("npm", ["pack", "--ignore-scripts", "--silent", "--pack-destination", folder], { cwd: EXTENSION });
	const tarball = join(folder, readdirSync(folder)[0]);
	execFileSync("tar", ["xzf", tarball, "-C", folder]);
	return { folder, tarball, package: join(folder, "package") };
}

test("the tarball holds what it needs, and no more", (t) => {
	const { package: root } = unpacked(t);
	const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
	assert.equal(manifest.dependencies, undefined, "no runtime dependencies");
	assert.ok(Object.keys(manifest.peerDependencies).every((name) => manifest.peerDependenciesMeta[name].optional));
	assert.deepEqual(readdirSync(root).sort(), ["README.md", "component", "dist", "package.json", "src"]);
	assert.deepEqual(readdirSync(join(root, "dist")).sort(), ["component.d.ts", "component.js"]);
});

for (const pi of VERSIONS) {
	test(`${pi}: pi install, then a session that prunes`, async (t) => {
		const { folder, package: root } = unpacked(t);
		const host = findHost(HOSTS, pi);
		for (const directory of ["agent", "home", "work"]) mkdirSync(join(folder, directory));
		// Only Node and the system's own programs can be found.
		const env = { ...environment(folder, host), PATH: `${dirname(host.node)}:/usr/bin:/bin` };
		const installed = spawnSync(host.node, [host.cli, "install", root], { cwd: join(folder, "work"), env, encoding: "utf8" });
		assert.equal(installed.status, 0, installed.stderr);
		const { packages } = JSON.parse(readFileSync(join(folder, "agent", "settings.json"), "utf8"));
		assert.equal(packages.length, 1);
		const script = readScript("prune-6x30");
		const run = await play(t, { pi, script: { ...script, steps: script.steps.slice(0, 2) }, packages: [join(folder, "agent", packages[0])], env: { PATH: env.PATH } });
		assert.equal(ofKind(run.sessions[0], "context-prune-frontier").length, 2);
	});
}

test("the component runs in plain Node as the README says", (t) => {
	const { folder, tarball } = unpacked(t);
	const home = join(folder, "plain");
	mkdirSync(home);
	writeFileSync(join(home, "package.json"), '{"private":true,"type":"module"}');
	execFileSync("npm", ["install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", "--silent", tarball], { cwd: home });
	const example = /```js\n([\s\S]*?)```/.exec(readFileSync(join(EXTENSION, "README.md"), "utf8"))[1];
	assert.ok(example.trim().split("\n").length <= 13, "about ten lines");
	writeFileSync(join(home, "example.js"), example);
	const ran = spawnSync(process.execPath, ["example.js"], { cwd: home, encoding: "utf8" });
	assert.equal(ran.status, 0, ran.stderr);
	assert.match(ran.stdout, /context_tree_query/);
});
