/** The same in a real browser, headless, where there is one: Debian's chromium. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";

const BROWSERS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const browser = process.env.CHROMIUM ?? BROWSERS.find(existsSync);
const file = (path) => readFileSync(new URL(path, import.meta.url));
const PAGE = '<!doctype html><meta charset="utf-8"><body><script type="module" src="/test/browser_page.js"></script>';
const QUIET = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-dev-shm-usage",
];

/** Serve the modules and the vectors; resolve with what the page says. */
async function inBrowser() {
  const profile = mkdtempSync(join(tmpdir(), "sottovoce-page-"));
  let said;
  const results = new Promise((done) => {
    said = done;
  });
  let seen = {};
  const server = createServer((request, response) => {
    const { url, headers } = request;
    const reply = (type, body) => response.writeHead(200, { "content-type": type, etag: '"copy 7"' }).end(body);
    if (url === "/") return reply("text/html", PAGE);
    if (url === "/vectors.json") {
      return reply("application/json", gunzipSync(file("../../tests/vectors/vectors.json.gz")));
    }
    if (url.startsWith("/seen/")) {
      seen = headers;
      return reply("application/json", "{}");
    }
    if (url === "/headers") return reply("application/json", JSON.stringify(seen));
    if (url === "/done") {
      let body = "";
      request.on("data", (part) => (body += part));
      return request.on("end", () => {
        reply("text/plain", "");
        said(JSON.parse(body));
      });
    }
    const path = /^\/(?:dist|test)\/[\w-]+\.js$/.test(url) ? new URL(`..${url}`, import.meta.url) : null;
    if (path && existsSync(path)) return reply("text/javascript", readFileSync(path));
    return response.writeHead(404).end();
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const address = `http://127.0.0.1:${server.address().port}/`;
  const process_ = spawn(browser, [...QUIET, `--user-data-dir=${profile}`, address], { stdio: "ignore" });
  const patience = setTimeout(() => said([{ name: "the page", error: "nothing came in two minutes" }]), 120_000);
  try {
    return await results;
  } finally {
    clearTimeout(patience);
    process_.kill();
    await new Promise((done) => process_.once("exit", done));
    server.closeAllConnections();
    server.close();
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

test("in a browser", { skip: browser ? false : "there is no Chromium here" }, async (about) => {
  const results = await inBrowser();
  assert.ok(results.length);
  for (const { name, error } of results) {
    await about.test(name, () => assert.equal(error, null));
  }
});
