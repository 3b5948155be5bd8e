// A memd for the tests: `memd up` with its own server, the offline extractor, and the HTTP door with tokens.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const CHECKOUT = fileURLToPath(new URL("../../../.venv/bin/memd", import.meta.url));
const MEMD = process.env["MEMD"] ?? (existsSync(CHECKOUT) ? CHECKOUT : "memd");
/** Far longer than it takes. */
const READY_MS = 100_000;

/** The apps that get a token, with the words of `memd token add`. */
const APPS = {
  desk: ["--all-users", ...["read", "write", "admin", "person"].flatMap((scope) => ["--scope", scope])],
  shop: ["--prefix", "shop:"],
};

/** @typedef {{ url: string, tokens: Record<keyof typeof APPS, string>, stop: () => Promise<void> }} Running */

/**
 * A new memd, or the one that MEMD_SERVED describes (JSON with `url` and `tokens`).
 * @returns {Promise<Running>}
 */
export async function start() {
  const served = process.env["MEMD_SERVED"];
  if (served !== undefined) return { ...JSON.parse(served), stop: async () => {} };
  const folder = await mkdtemp(join(tmpdir(), "memd-client-"));
  const port = await freePort();
  const env = {
    ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("MEMD"))),
    MEMD_DATA_DIR: folder,
    MEMD_HTTP__ENABLED: "true",
    MEMD_HTTP__PORT: String(port),
    MEMD_HTTP__TOKENS: join(folder, "tokens.json"),
    MEMD_EXTRACTION__EXTRACTOR: "rules",
    MEMD_SCHEDULER__QUIET_S: "0.3",
    MEMD_DRAIN__WORKERS: "1",
  };
  /** @param {keyof typeof APPS} app */
  const tokenOf = async (app) => {
    const { stdout } = await promisify(execFile)(MEMD, ["token", "add", "--json", "--app", app, ...APPS[app]], { env });
    return String(JSON.parse(stdout).token);
  };
  const tokens = { desk: await tokenOf("desk"), shop: await tokenOf("shop") };
  const up = spawn(MEMD, ["up"], { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"] });
  const ended = once(up, "exit");
  let log = "";
  for (const stream of [up.stdout, up.stderr]) stream.on("data", (/** @type {Buffer} */ data) => (log += data));
  const url = `http://127.0.0.1:${port}`;
  for (const until = Date.now() + READY_MS; !(await isReady(url)); ) {
    if (up.exitCode !== null || Date.now() > until) throw new Error(`memd up is not ready:\n${log}`);
    await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 50))]);
  }
  return {
    url,
    tokens,
    stop: async () => {
      up.kill("SIGTERM");
      await ended;
      await rm(folder, { recursive: true });
    },
  };
}

/** @param {string} url */
async function isReady(url) {
  try {
    return (await fetch(`${url}/ready`)).status === 200;
  } catch {
    return false;
  }
}

/**
 * A port on which nothing listens.
 * @returns {Promise<number>}
 */
export async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

/**
 * The code blocks of a document.
 * @param {string} path from the repository's root
 * @param {string} language a regular expression; all languages without it
 */
export async function blocksOf(path, language = "\\w*") {
  const text = await readFile(new URL(`../../../${path}`, import.meta.url), "utf8");
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, "gms"))].map(([, code]) => String(code));
}
