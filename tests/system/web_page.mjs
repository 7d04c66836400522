// SPDX-License-Identifier: Apache-2.0
// Looks at the web page in Chromium, for test_web_page.py: one check by name, which throws when it fails.
//
// usage: node web_page.mjs PLAYWRIGHT CHROMIUM CHECK JSON
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [playwright, executablePath, check, given] = process.argv.slice(2);
const { chromium } = await import(pathToFileURL(playwright));
const { url, pictures, task, crashed, pid } = JSON.parse(given);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

// Says that it has come so far, and waits until the caller has done its part.
async function reached(words) {
  console.log(words);
  return (await lines.next()).value;
}

const PATIENCE_MS = 120_000; // for anything to happen at all, on a busy machine

// A browser that does not start says nothing about the page.
async function launch(tries) {
  try {
    return await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"], timeout: PATIENCE_MS });
  } catch (error) {
    console.error(String(error));
    if (tries === 1) throw error;
    return launch(tries - 1);
  }
}

const browser = await launch(3);
browser.on("disconnected", () => console.error("the browser has gone"));

// What each page said in its console and could not load, for a failure's explanation.
const consoles = new Map();

function watch(page) {
  const said = [];
  consoles.set(page, said);
  page.on("console", (message) => said.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => said.push(String(error)));
  page.on("crash", () => said.push("the page has crashed"));
  page.on("requestfailed", (request) => said.push(`${request.url()}: ${request.failure()?.errorText}`));
  page.on("response", (reply) => reply.status() >= 400 && said.push(`${reply.url()}: ${reply.status()}`));
}

// What all pages show, as text.
async function explain() {
  for (const [page, said] of consoles) {
    const late = new Promise((done) => setTimeout(done, 10_000, "(no answer)"));
    const text = page.evaluate(() => document.body.innerText).catch(String);
    console.error(`---- ${page.url()}\n${(await Promise.race([text, late])).slice(0, 3000)}`);
    console.error(said.slice(-30).join("\n"));
  }
}

async function open(address, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1360, height: 900 }, ...options });
  context.setDefaultTimeout(PATIENCE_MS);
  context.on("page", watch);
  const page = await context.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  page.on("request", (request) => {
    if (new URL(request.url()).host !== new URL(url).host) problems.push(`loads ${request.url()}`);
  });
  if (address) await page.goto(address);
  return { page, problems, context };
}

// Colours of the first lane: one that is drawn has many.
function countColours() {
  const canvas = document.querySelector(".lane canvas");
  if (!canvas) return 0;
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const colours = new Set();
  for (let i = 0; i < data.length; i += 4) colours.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
  return colours.size;
}

// Points about in the colour of the host's curves, whose edges are smoothed, in that of host memory.
function countHostMemory() {
  const chart = [...document.querySelectorAll(".chart")].find((one) => one.textContent.includes("Host memory"));
  const canvas = chart?.querySelector("canvas");
  if (!canvas) return 0;
  const colour = getComputedStyle(document.documentElement).getPropertyValue("--host").trim();
  const wanted = parseInt(colour.slice(1), 16);
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let n = 0;
  for (let i = 0; i < data.length; i += 4) {
    const away = [16, 8, 0].map((shift, k) => Math.abs(data[i + k] - ((wanted >> shift) & 255)));
    n += data[i + 3] > 100 && Math.max(...away) < 40;
  }
  return n;
}

// How much of the height of the first lane's strip is in the colour of power, where that is most. Not of
// the last columns: they are empty until the moment that they stand for has been sampled.
function countPower() {
  const canvas = document.querySelector(".lane canvas");
  if (!canvas) return null;
  const colour = getComputedStyle(document.documentElement).getPropertyValue("--power").trim();
  const wanted = parseInt(colour.slice(1), 16);
  const ratio = canvas.height / canvas.clientHeight;
  const [top, height] = [Math.round(154 * ratio), Math.round(26 * ratio)]; // lane.jsx
  const { data } = canvas.getContext("2d").getImageData(0, top, canvas.width, height);
  const filled = new Array(canvas.width).fill(0);
  for (let i = 0; i < data.length; i += 4)
    filled[(i / 4) % canvas.width] += ((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]) === wanted;
  return Math.max(...filled) / height;
}

// The first value that meets the condition; until then elements may be missing. (Playwright's
// waitForFunction evaluates text, which the page's policy forbids.)
async function eventually(get, condition) {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    let value;
    try {
      value = await get();
      if (condition(value)) return value;
    } catch (error) {
      value = String(error);
    }
    assert.ok(Date.now() < end, `did not come: ${JSON.stringify(value)}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

// On a narrow screen no cell is beside it. All are measured at one moment: rows come and go.
async function assertInSight(page, cells) {
  const findHidden = (wanted) => {
    const shown = [...document.querySelectorAll(wanted)].filter((cell) => cell.getClientRects().length);
    return shown.length && shown.filter((cell) => cell.getBoundingClientRect().right > innerWidth).map((cell) => cell.textContent);
  };
  await eventually(() => page.evaluate(findHidden, cells), (hidden) => hidden.length === 0);
}

const widerThanScreen = (page) => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);

const here = (address) => new URL("/", address).href;

const checks = {
  // All pages, by pointer and by keys, in dark and light and on a phone.
  async pages() {
    const { page, problems, context } = await open(url, { colorScheme: "dark" });
    await page.waitForSelector(".lane canvas");
    await page.waitForSelector("tr[data-task]");
    await page.waitForSelector(".live.good");
    assert.equal(new URL(page.url()).search, "", "the token does not stay in the address");
    assert.equal(await page.evaluate(() => document.cookie), "", "the session is not the script's");
    await eventually(() => page.evaluate(countColours), (colours) => colours > 8);
    await eventually(() => page.textContent("tr[data-task] .why:not(:empty)"), (why) => why.length > 5);

    // A long reason is shown whole by a key, and its row is not opened by that. A row that moves as
    // other tasks change loses the focus: then it is given once more.
    const last = await page.locator("tr[data-task]:has(.why button.long)").last().getAttribute("data-task");
    const long = page.locator(`tr[data-task="${last}"] .why button`);
    const isWhole = () => long.evaluate((one) => one.scrollWidth <= one.clientWidth + 1);
    const isOpen = async () => (await long.getAttribute("aria-expanded")) === "true";
    await page.setViewportSize({ width: 1000, height: 900 });
    await eventually(isWhole, (is) => !is);
    await eventually(async () => {
      if (!(await isOpen())) {
        await long.focus();
        await page.keyboard.press("Enter");
      }
      return (await isOpen()) && (await isWhole());
    }, (is) => is);
    assert.equal(await page.locator(".lane").count(), 2, "still the overview");
    await page.setViewportSize({ width: 1360, height: 900 });

    await page.evaluate(() => document.activeElement.blur());
    await eventually(async () => {
      await page.keyboard.press("j");
      await page.keyboard.press("Enter");
      return page.locator(".facts").count();
    }, (n) => n === 1);
    await page.goto(here(url) + `#/task/${task}`);
    await page.waitForSelector(".chart canvas");
    await page.locator(".read-only", { hasText: `colloc cancel ${task}` }).waitFor();
    // Sampled each five seconds, and a curve all the same.
    await eventually(() => page.evaluate(countHostMemory), (n) => n > 20);
    await page.locator(".log", { hasText: "Using" }).waitFor();
    await page.emulateMedia({ colorScheme: "light" });
    await page.goto(here(url) + `#/task/${crashed}`);
    await page.waitForSelector(".story .bad");
    await page.waitForSelector(".chart canvas");

    await page.keyboard.press("2");
    await page.locator(".state", { hasText: "COMPLETED" }).first().waitFor();
    assert.match(await page.textContent("tr[data-task]:has-text('lenet') td[data-label=GPU]"), /^\d$/);
    await page.selectOption("select >> nth=0", "FAILED");
    await page.waitForSelector("text=No such task has ended in this time.");
    await page.keyboard.press("3");
    await page.waitForSelector("[data-gpu='0'] .holders");
    await page.keyboard.press("4");
    await page.waitForSelector(".report tbody tr");
    assert.deepEqual(await page.locator(".report tbody th").allTextContents(), ["root", "All"]);
    const saved = await page.locator(".ledger p").textContent();
    assert.match(saved, /^All: -?[0-9.]+ (h|min|s) saved .* alone; speed beside others measured .*, unknown /);
    const [download] = await Promise.all([page.waitForEvent("download"), page.click("text=Save as CSV")]);
    assert.match(download.suggestedFilename(), /^colloc-report-.*-user\.csv$/);
    await page.selectOption(".report select >> nth=1", "gpu");
    await page.locator(".report tbody th", { hasText: /^1$/ }).waitFor();
    await page.keyboard.press("1");
    await page.waitForSelector(".lane canvas");
    assert.match(await page.textContent(".host"), /Memory in use .*of .*GiB/);
    assert.match(await page.textContent("main"), /This page is read-only; colloc cancel ID/);
    assert.match(await page.textContent(".shares tbody"), /root/);
    await page.keyboard.press("/");
    await page.keyboard.type("nosuchtask");
    await page.waitForSelector("text=No tasks wait or run that match the filter.");
    await page.keyboard.press("Escape");

    const phone = await context.newPage();
    await phone.setViewportSize({ width: 390, height: 800 });
    await phone.goto(here(url));
    await phone.waitForSelector(".lane canvas");
    await eventually(() => widerThanScreen(phone), (px) => px <= 0);
    await eventually(() => phone.evaluate(() => document.querySelector("header").offsetHeight), (px) => px < 90);
    // A row is a card there: nothing of it is out of sight.
    await phone.waitForSelector(".shares tbody td");
    await assertInSight(phone, "tr[data-task] td, .shares tbody td");
    assert.match(await phone.evaluate(() => getComputedStyle(document.querySelector(".shares td"), "::before").content), /Rank/);
    // Nor on a tablet, where the reasons have no room beside the other columns.
    await phone.setViewportSize({ width: 820, height: 800 });
    await assertInSight(phone, "tr[data-task] td, .shares tbody td");
    await phone.setViewportSize({ width: 390, height: 800 });
    await phone.goto(here(url) + "#/report");
    await phone.waitForSelector(".report tbody td");
    await assertInSight(phone, ".report tbody td");
    assert.deepEqual(problems, []);
  },

  // 250 cancelled tasks of an array and one that failed: rows of arrays, pages by link and by address.
  async history() {
    const { page, problems } = await open(url);
    await page.waitForSelector(".live.good");
    await page.goto(here(url) + "#/history");
    const rows = page.locator("tr[data-task]");
    const ids = () => page.locator("tr[data-task] .id").allTextContents();
    const failed = String(crashed);
    const show = (wanted) => eventually(ids, (found) => found.join() === wanted);
    // A page is known by the number of its last row's tasks.
    const showTasks = async (n) => {
      await page.locator("tr[data-task]:last-child .count", { hasText: new RegExp(`^${n} tasks$`) }).waitFor();
      return (await ids()).pop();
    };
    const first = await showTasks(99);
    assert.match(first, new RegExp(`^${task}_\\[\\d+-\\d+\\]$`));
    assert.equal((await ids())[0], failed);
    await page.click("text=Older →");
    const second = await showTasks(100);
    assert.match(page.url(), /#\/history\?after=[\d.]+$/);
    await page.click("text=Older →");
    const third = await showTasks(51);
    assert.equal(new Set([first, second, third]).size, 3);
    assert.equal(await page.locator("text=Older →").count(), 0, "a page after the last");
    await page.reload();
    assert.equal(await showTasks(51), third);
    await page.locator("text=page 3").waitFor();
    await page.click("text=← Newer");
    assert.equal(await showTasks(100), second);
    await page.goBack();
    await showTasks(51);

    await page.focus("tr[data-task] .id button");
    await page.keyboard.press("Enter");
    await eventually(() => rows.count(), (n) => n === 51);
    assert.match((await ids())[0], new RegExp(`^${task}_\\d+$`));

    await page.selectOption("select >> nth=0", "FAILED");
    await show(failed);
    assert.match(page.url(), /#\/history\?state=FAILED$/);
    assert.equal(await page.textContent("td[data-label=Exit]"), "3");
    assert.equal(await page.textContent("td[data-label=GPU]"), "0");
    assert.match(await page.textContent("td.why"), /ValueError: bad shape/);
    await page.setViewportSize({ width: 390, height: 800 });
    await assertInSight(page, "tr[data-task] td");
    // A place that no page gave: the daemon's words, and a way out.
    await page.goto(here(url) + "#/history?after=x");
    await page.reload();
    await page.locator(".error", { hasText: "after=x" }).waitFor();
    await page.click("text=← Newer");
    assert.equal(await showTasks(99), first);
    assert.deepEqual(problems.filter((text) => !text.includes("400")), []);
  },

  // The holders of each GPU's memory: a task, one that does not use it, and a process without colloc.
  async gpus() {
    const { page, problems } = await open(url);
    await page.waitForSelector(".live.good");
    await page.locator("tr[data-task]", { hasText: "forgotten.sh" }).locator(".mark", { hasText: "unused" }).waitFor();
    await page.goto(here(url) + "#/gpus");
    const row = (text) => page.locator(".holders tr", { hasText: text });
    await row("resnet50.sh").waitFor();
    const external = row(`pid ${pid}`);
    await external.locator("text=not started by colloc").waitFor();
    await eventually(() => external.textContent(), (text) => /colloc-pretend-.*GiB/.test(text));
    await row("forgotten.sh").locator("text=/^unused for /").waitFor();

    // The bar is as full as the GPU is, in which the trainings have their memory.
    const look = () =>
      page.evaluate(() => {
        const [used, total] = document.querySelector("[data-gpu='0'] .figures").textContent.match(/[\d.]+(?= GiB)/g).map(Number);
        const bar = document.querySelector("[data-gpu='0'] .bar");
        const part = [...bar.children].reduce((sum, one) => sum + one.getBoundingClientRect().width, 0) / bar.clientWidth;
        return { used, total, part };
      });
    await eventually(look, ({ used, total, part }) => used > 10 && Math.abs(part - used / total) < 0.05);
    const paths = page.locator("[data-gpu='0'] .spark path");
    await eventually(() => paths.count(), (n) => n === 2);
    for (const path of await paths.all()) await eventually(() => path.getAttribute("d"), (d) => d?.includes("H"));

    await page.setViewportSize({ width: 390, height: 800 });
    await assertInSight(page, ".holders td");
    assert.deepEqual(problems, []);
  },

  // A GPU with MIG: its instances have the tasks, and its own memory is in use without being left over.
  async mig() {
    const { page, problems } = await open(url);
    await page.waitForSelector(".live.good");
    await page.goto(here(url) + "#/gpus");
    await page.locator("[data-gpu='0:0'] .holders tr", { hasText: "resnet50.sh" }).waitFor();
    assert.equal(await page.textContent("[data-gpu='0:0'] h3 .dim"), "A100-SXM4-40GB MIG 3g.20gb");
    // No curve of power, which is not known.
    await eventually(() => page.locator("[data-gpu='0:0'] .spark").count(), (n) => n === 1);
    const parent = page.locator("[data-gpu='0']");
    await eventually(() => parent.locator(".bar i").count(), (n) => n === 1);
    await eventually(() => parent.locator(".bar i").boundingBox(), (box) => box?.width > 30);
    assert.ok(!/no process|does not list/.test(await parent.textContent()), await parent.textContent());
    assert.deepEqual(problems, []);
  },

  // The pictures of docs/, for scripts/draw-web.
  async pictures() {
    const draw = (page, name) => page.screenshot({ path: `${pictures}/${name}.png` });
    const { page, context } = await open(url, { colorScheme: "dark", viewport: { width: 1280, height: 720 } });
    await page.waitForSelector("tr[data-task]");
    await page.waitForSelector(".lane canvas");
    await eventually(() => page.evaluate(countColours), (colours) => colours > 8);
    await draw(page, "overview-dark");
    await page.emulateMedia({ colorScheme: "light" });
    await page.goto(here(url) + `#/task/${task}`);
    await page.waitForSelector(".chart canvas");
    await draw(page, "task-light");
    await page.emulateMedia({ colorScheme: "dark" });
    await page.goto(here(url) + "#/gpus");
    await page.locator(".holders tr", { hasText: "not started by colloc" }).waitFor();
    await page.waitForSelector(".spark path[d*=H]");
    await page.setViewportSize({ width: 1280, height: 420 });
    await draw(page, "gpus-dark");
    await page.setViewportSize({ width: 390, height: 800 });
    await page.goto(here(url));
    await page.waitForSelector(".lane canvas");
    await eventually(() => page.evaluate(countColours), (colours) => colours > 8);
    await draw(page, "overview-phone");
    await context.close();
  },

  // What happens is shown without loading the page again, also after the daemon was away.
  async live() {
    const { page } = await open(url);
    await page.waitForSelector("text=No tasks wait or run. In a terminal, colloc submit");
    assert.equal(await page.isVisible("th:has-text('Why it waits')"), false, "a table of nothing");
    // An idle GPU draws a part of its limit: the strip of its power is not full.
    await eventually(() => page.evaluate(countPower), (part) => part > 0.02 && part < 0.5);
    const first = await reached("shown");
    await page.locator(`tr[data-task="${first}"] .why code`, { hasText: `colloc release ${first}` }).waitFor();
    await reached("appeared");
    await page.waitForSelector(`tr[data-task="${first}"]`, { state: "detached" });
    console.log("left");
  },

  // A waiting task's page says when it may start, and why it waits now.
  async waiting() {
    const { page } = await open(url);
    await page.goto(here(url) + `#/task/${task}`);
    const fact = (name) => page.locator(`.facts div:has(dt:text-is("${name}")) dd`);
    await eventually(() => fact("Expected start").innerText(), (text) => /\d\d:\d\d/.test(text));
    await eventually(() => fact("Reason").innerText(), (text) => text.startsWith("Resources:"));
    await reached("shown");
    await eventually(() => fact("Reason").innerText(), (text) => text.includes("1 task is before it"));
  },

  // A Slurm cluster whose nodes have no agents: what is not known is said, and is never zero.
  async slurm() {
    const { page, problems } = await open(url);
    await page.waitForSelector(`tr[data-task="${task}"]`);
    await page.locator(".note", { hasText: "scancel ID" }).waitFor();
    await page.locator(".note", { hasText: "does not record GPUs and jobs over time" }).waitFor();
    const heads = await page.locator(".gpu h3").allTextContents();
    assert.equal(heads.length, 2);
    for (const head of heads) assert.match(head, /GPU n0:\d .*– of 80.0 GiB · SM – · – · –/);
    await page.goto(here(url) + `#/task/${task}`);
    await page.waitForSelector(".facts");
    const facts = await page.textContent(".facts");
    for (const unknown of ["undefined", "NaN", "Energy", "Exit"]) assert.ok(!facts.includes(unknown), facts);
    await page.locator("main", { hasText: "does not record" }).waitFor();
    await page.locator(".read-only", { hasText: `scancel ${task}` }).waitFor();
    await page.keyboard.press("2");
    await page.locator("main", { hasText: "slurmctld still knows" }).waitFor();
    await page.keyboard.press("3");
    const gpu = page.locator("[data-gpu='n0:0']");
    await gpu.locator("text=Memory in use: not known").waitFor();
    assert.equal(await gpu.locator(".spark").count(), 0, "a curve of nothing");
    await gpu.locator(".note", { hasText: "its node has no agent" }).waitFor();
    await page.setViewportSize({ width: 390, height: 800 });
    await eventually(() => widerThanScreen(page), (px) => px <= 0);
    await page.keyboard.press("1");
    await page.waitForSelector(`tr[data-task="${task}"]`);
    await assertInSight(page, "tr[data-task] td");
    assert.deepEqual(problems, []);
    await reached("shown");
    await page.waitForSelector(`tr[data-task="${task}"]`, { state: "detached" });
  },

  // A daemon that has no time at first: the page asks once more for all that was refused.
  async busy() {
    const { page, context } = await open();
    const refused = new Set();
    await context.route(/\/v1\/(?!events)/, (route) => {
      const { pathname } = new URL(route.request().url());
      if (refused.has(pathname)) return route.continue();
      refused.add(pathname);
      return route.fulfill({ status: 503, json: { error: { message: "not now" } } });
    });
    await page.goto(url);
    await page.waitForSelector(`tr[data-task="${task}"]`);
    await page.waitForSelector(".lane canvas");
    await page.goto(here(url) + `#/task/${task}`);
    await page.waitForSelector(".chart canvas");
    await page.locator(".log", { hasText: "Using" }).waitFor();
    for (const path of ["", `/${task}`, `/${task}/log`]) assert.ok(refused.has(`/v1/tasks${path}`), [...refused].join());
  },

  // Ten thousand tasks: the first of them at once, all of them on request.
  async many() {
    const { page, problems } = await open(url);
    const rows = page.locator("tr[data-task]");
    await rows.first().waitFor();
    await eventually(() => rows.count(), (n) => n === 1); // an array whose tasks all wait for the same
    assert.match(await rows.first().textContent(), /^1_\[1-\d+\]/);
    const marks = await page.evaluate(() => performance.getEntriesByName("first-view").length);
    assert.equal(marks, 1);
    await page.click("text=/^Load all tasks/");
    await page.fill("#filter", "1_10000");
    await eventually(() => rows.allTextContents(), (found) => found.some((text) => text.startsWith("1_10000")));
    await page.click(`tr[data-task="10001"]`);
    await page.waitForSelector("text=Task 1_10000");
    assert.deepEqual(problems, []);
  },

  // Without a session, with a used token, and under another name.
  async refused() {
    const { page } = await open(here(url));
    await page.waitForSelector("text=colloc web --print-url");
    assert.equal(await page.locator(".lane").count(), 0);
    const again = await open();
    await again.page.goto(url);
    await again.page.waitForSelector(".live");
    const other = await open(url);
    await other.page.waitForSelector("text=this login is used or has expired");
    assert.equal(await other.page.locator(".lane").count(), 0);
    const name = await open();
    const rebound = here(url).replace("127.0.0.1", "colloc.localhost");
    assert.equal((await name.page.goto(rebound)).status(), 403);
  },

  // One login in one browser: it lasts over a reload, other tabs get it, another port of the same host
  // does not, and a logout ends it in all tabs.
  async session() {
    const { page, context } = await open(url);
    await page.waitForSelector(".live.good");
    assert.equal(page.url(), here(url), "the token stays in the address");
    await page.reload();
    await page.waitForSelector(".live.good");

    const tab = await context.newPage();
    await tab.goto(here(url) + "#/gpus");
    await tab.waitForSelector(".live.good");
    const link = await context.newPage();
    await link.goto(url); // used: but there is a session
    await link.waitForSelector(".live.good");

    // What the browser sends to another server of this host, from its own page and within the same tab.
    const secret = await page.evaluate(() => sessionStorage.getItem("session"));
    assert.match(secret, /^[0-9a-f]{64}$/);
    const seen = [];
    const other = createServer((request, reply) => {
      seen.push(JSON.stringify(request.rawHeaders) + request.url);
      reply.setHeader("Content-Type", "text/html");
      reply.end("<script>fetch('/keys?' + JSON.stringify({ ...sessionStorage, ...localStorage }))</script>");
    });
    await new Promise((done) => other.listen(0, "127.0.0.1", done));
    const beside = `http://127.0.0.1:${other.address().port}/`;
    await link.goto(beside);
    await eventually(() => seen.length, (n) => n >= 2 && seen.some((text) => text.includes("/keys?")));
    for (const text of seen) {
      assert.ok(!text.includes(secret), text);
      assert.ok(!/cookie/i.test(text), text);
    }
    assert.deepEqual(await context.cookies(), []);
    other.close();

    await tab.click("text=Log out");
    for (const left of [tab, page]) await left.waitForSelector("text=colloc web --print-url");
    const late = await fetch(here(url) + "v1/tasks", { headers: { "Colloc-Session": secret } });
    assert.equal(late.status, 401, "the daemon still knows the session");
  },
};

try {
  await checks[check]();
  await browser.close();
} catch (error) {
  console.error(error);
  await explain();
  process.exitCode = 1;
}
process.exit();
