// The little that the checks share: entities of their own, a deadline each, and a plain report.
import assert from "node:assert/strict";
import net from "node:net";

// A busy machine may take longer than the quarter of a second that Node gives an address.
net.setDefaultAutoSelectFamilyAttemptTimeout(5_000);

const deadline = 45_000;
const atOnce = 12;

const checks = [];

/** check adds a check; it passes when fn ends without throwing. */
export function check(name, fn) {
  checks.push({ name, fn });
}

let serial = 0;

/** unique makes a name that nothing else on this server has. */
export function unique(prefix) {
  return `${prefix}-js-${process.pid}-${++serial}`;
}

/** fails asserts that p is rejected with an error that has the code. */
export async function fails(p, code) {
  try {
    await p;
  } catch (err) {
    if (err.code !== code) {
      throw new Error(`expected an error with code ${code}, got code ${err.code}: ${err.message}`);
    }
    return err;
  }
  throw new Error(`expected an error with code ${code}, got none`);
}

/** eventually runs fn until it no longer throws, for at most 15 seconds. */
export async function eventually(fn) {
  const end = Date.now() + 15_000;
  for (;;) {
    try {
      return await fn();
    } catch (err) {
      if (Date.now() > end) throw err;
      await new Promise((r) => setTimeout(r, 200));
    }
  }
}

export function sleep(ms) {
  return new Promise((r) => setTimeout(r, ms));
}

function describe(err) {
  if (err instanceof assert.AssertionError && err.generatedMessage) {
    return `expected ${show(err.expected)}, got ${show(err.actual)}`;
  }
  const at = (err.stack ?? "").split("\n").find((l) => l.includes("scenario.mjs"));
  return `${err.name ?? "Error"}${err.code ? ` (${err.code})` : ""}: ${err.message}${at ? ` ${at.trim()}` : ""}`;
}

function show(v) {
  if (typeof v === "bigint") return `${v}n`;
  return JSON.stringify(v, (_, x) => (typeof x === "bigint" ? `${x}n` : x)) ?? String(v);
}

async function limited(fn) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`expected an end within ${deadline / 1000} s, got none`)), deadline);
  });
  try {
    await Promise.race([fn(), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** run runs every check whose name contains the filter, prints the outcome of each, and says whether all passed. */
export async function run(language, filter) {
  const queue = checks.filter((c) => !filter || c.name.includes(filter));
  let passed = 0;
  let failed = 0;
  async function worker() {
    for (let c = queue.shift(); c; c = queue.shift()) {
      const start = Date.now();
      try {
        await limited(c.fn);
        passed++;
        console.log(`ok    ${language} ${c.name} (${((Date.now() - start) / 1000).toFixed(1)} s)`);
      } catch (err) {
        failed++;
        console.log(`FAIL  ${language} ${c.name}: ${describe(err)}`);
        if (process.env.DLQ_INTEROP_TRACE) console.log(err.stack);
      }
    }
  }
  await Promise.all(Array.from({ length: atOnce }, worker));
  console.log(`${language}: ${passed} passed, ${failed} failed`);
  return failed === 0;
}
