// The package: its build is that of its source, it carries what it needs, and what its documents print runs.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { startModel } from "./model.mjs";
import { blocksOf, start } from "./server.mjs";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("..", import.meta.url));
const TSC = join(ROOT, "node_modules/typescript/bin/tsc");
const skip = !existsSync(TSC) && "not run: the packages are not installed (npm ci)";

/**
 * The files of a folder with their texts.
 * @param {string} folder
 */
async function textsIn(folder) {
  const names = (await readdir(folder)).sort();
  return Object.fromEntries(await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name), "utf8")])));
}

test("lib/ is what `npm run build` makes of src/", { skip }, async () => {
  const folder = await mkdtemp(join(tmpdir(), "memd-client-"));
  try {
    await run(process.execPath, [TSC, "-p", ROOT, "--outDir", folder]);
    assert.deepEqual(await textsIn(join(ROOT, "lib")), await textsIn(folder));
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("the package carries its code and its types, and nothing else", { skip }, async () => {
  const { stdout } = await run("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], { cwd: ROOT });
  /** @type {[{ files: Array<{ path: string }> }]} */
  const [{ files }] = JSON.parse(stdout);
  const other = files.map(({ path }) => path).filter((path) => !/^(lib|generated)\/[\w-]+\.(js|d\.ts)$/.test(path));
  assert.deepEqual(other.sort(), ["README.md", "package.json"]);
  const { exports, dependencies } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8"));
  assert.equal(dependencies, undefined);
  const paths = Object.values(exports).flatMap((entry) => (typeof entry === "string" ? [] : Object.values(entry)));
  for (const path of paths) assert.ok(existsSync(join(ROOT, path)), path);
});

test("the blocks of the documents run", { skip }, async () => {
  const served = await start();
  const model = await startModel();
  try {
    const env = { ...process.env, MEMD_URL: served.url, MEMD_TOKEN: served.tokens.desk, MODEL_URL: model.url };
    const printed = [];
    for (const block of [...(await blocksOf("clients/typescript/README.md")), ...(await blocksOf("docs/agents.md", "ts"))]) {
      model.replies.splice(0, Infinity, { text: "杭州很美。" });
      const child = run(process.execPath, ["--input-type=module", "-"], { cwd: ROOT, env });
      child.child.stdin?.end(block);
      const { stdout, stderr } = await child;
      printed.push(stdout + stderr);
    }
    const [first, errors, stream, agents, ...more] = printed;
    assert.deepEqual(more, []);
    assert.match(String(first), /^stored 2\n<memory>[^]*Porto[^]*绿茶/);
    assert.match(String(errors), /^E_LIMIT limit \d+ false\n$/);
    assert.equal(String(stream).replaceAll("\n", ""), "杭州很美。");
    assert.match(JSON.stringify(model.asked[0]), /<memory>.*Porto/);
    assert.equal(agents, "杭州很美。\n");
  } finally {
    await model.stop();
    await served.stop();
  }
});
