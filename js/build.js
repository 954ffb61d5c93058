/** Builds dist: the modules that npm packs, one file for pages, and the types. */

import { execFileSync } from "node:child_process";
import { copyFileSync, readFileSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const common = { bundle: true, format: "esm", target: "es2022", logLevel: "warning", legalComments: "none", charset: "utf8" };

rmSync(here("dist"), { recursive: true, force: true });
await build({
  ...common,
  entryPoints: ["index", "node", "device"].map((name) => here(`src/${name}.ts`)),
  outdir: here("dist"),
  splitting: true,
  external: ["node:*"],
});
await build({
  ...common,
  entryPoints: [here("src/index.ts")],
  outfile: here("dist/sottovoce.min.js"),
  minify: true,
  metafile: true,
  platform: "browser",
});
execFileSync(process.execPath, [here("node_modules/typescript/bin/tsc"), "--project", here("tsconfig.json")], {
  stdio: "inherit",
});
copyFileSync(here("../LICENSE"), here("LICENSE"));

const page = readFileSync(here("dist/sottovoce.min.js"));
console.log(`sottovoce.min.js: ${page.length} bytes, ${gzipSync(page, { level: 9 }).length} in gzip`);
