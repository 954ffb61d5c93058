/** The device without a server: for tests, audits, and those who carry reports themselves. */

export { stickyCoins } from "./device/coins.js";
export { DecidingDevice } from "./device/deciding.js";
export { Device } from "./device/device.js";
export { type Context, encode } from "./device/encode.js";
export { type AnyLedger, OneReport } from "./device/ledger.js";
export { finish, outcomeOf, type Reward } from "./device/privatise.js";
export { freshCoins } from "./device/coins.js";
export { source } from "./device/randomness.js";
export { hex, unhex } from "./shared/bytes.js";
export { Releases } from "./device/releases.js";
export { isKey, verify } from "./device/signature.js";
export { sha256, sha512, hmac } from "./shared/hashes.js";
export { parse } from "./shared/json.js";
export { fingerprint } from "./shared/experiment.js";
export { type Release, releaseFromJson } from "./shared/release.js";
export { blockFromJson, signedFromJson } from "./shared/signed.js";
export { canonical, realText, repr, shortText } from "./shared/values.js";
export { odds } from "./shared/whisper/subset.js";
export { type Report, reportToBytes } from "./shared/wire.js";
