/** Hashes and signatures beside those of OpenSSL, and draws that are never biased. */

import assert from "node:assert/strict";
import { createHash, createHmac, generateKeyPairSync, randomBytes, sign } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { freshCoins, hex, hmac, isKey, odds, sha256, sha512, source, unhex, verify } from "../dist/device.js";

test("hashes are those of OpenSSL, at every length up to five blocks", () => {
  for (let length = 0; length < 640; length++) {
    const message = randomBytes(length);
    assert.equal(hex(sha256(message)), createHash("sha256").update(message).digest("hex"));
    assert.equal(hex(sha512(message)), createHash("sha512").update(message).digest("hex"));
    const key = randomBytes(length % 65);
    assert.equal(hex(hmac(key, message)), createHmac("sha256", key).update(message).digest("hex"));
  }
});

test("a good signature is taken; any bit that is turned makes it bad", () => {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const key = publicKey.export({ format: "der", type: "spki" }).subarray(-32);
  for (let i = 0; i < 24; i++) {
    const message = randomBytes(i);
    const good = sign(null, message, privateKey);
    assert.ok(verify(key, good, message));
    const bad = Uint8Array.from(good);
    bad[(5 * i) % 64] ^= 1 << i % 8;
    assert.ok(!verify(key, bad, message));
  }
  const good = sign(null, randomBytes(0), privateKey);
  const order = 2n ** 252n + 27742317777372353535851937790883648493n;
  const scalar = BigInt(`0x${hex(good.subarray(32).reverse())}`) + order;
  const more = Uint8Array.from([...good.subarray(0, 32), ...unhex(scalar.toString(16).padStart(64, "0")).reverse()]);
  assert.ok(!verify(key, more, new Uint8Array()));
  assert.ok(!verify(key, good.subarray(0, 63), new Uint8Array()));
});

test("keys of small order and those that are not written as they must be are no keys", () => {
  const digits = [
    "0100000000000000000000000000000000000000000000000000000000000000",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "0200000000000000000000000000000000000000000000000000000000000000",
  ];
  for (const each of digits) assert.ok(!isKey(unhex(each)), each);
  assert.ok(!isKey(new Uint8Array(31)));
});

test("an arm is drawn by the first 53 of 56 bits", () => {
  const bytes = source.bytes;
  try {
    source.bytes = (count) => {
      assert.equal(count, 7);
      return Uint8Array.of(0, 0, 0, 0, 0, 0x12, 0x38);
    };
    assert.equal(freshCoins(), 0x1238 >> 3);
  } finally {
    source.bytes = bytes;
  }
});

test("A is the last whole number below 2^64 times e^ε", () => {
  assert.equal(odds(0.5), 30413539329486470295n);
  assert.equal(odds(1), 50143449209799256682n);
  assert.equal(odds(2), 136304026803256390412n);
  for (const epsilon of [64, 65, 1e6]) {
    assert.equal(odds(epsilon), 115018199355157251870643531501709554553678249259n);
  }
  assert.ok(odds(1e-9) > 2n ** 64n);
});

test("no module draws from anything but the operating system", () => {
  const folder = new URL("../src/", import.meta.url);
  const modules = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(".ts"));
  assert.ok(modules.length > 40);
  const drawing = (word) => modules.filter((name) => readFileSync(new URL(name, folder), "utf8").includes(word));
  assert.deepEqual(drawing("getRandomValues(").map(String), ["device/randomness.ts"]);
  // The wait for a lock on a file tells nothing and is no secret.
  assert.deepEqual(drawing("Math.random").map(String), ["device/file.ts"]);
});
