/**
 * `console`: the console in Chromium, beside the times that people take for at once.
 * `console-hour`: whether the pages that are always open keep their memory.
 */
import { build } from "esbuild"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { type Browser, type CDPSession, chromium, type Page } from "playwright-core"
import { median, type Part, type Row, within } from "./Comparison.ts"
import { type Query, withDatabase } from "./Database.ts"
import type { LoadDevice } from "./Load.ts"
import { load, withDirectory } from "./Processes.ts"
import { ownerKey, startReferenceServer } from "./ReferenceServer.ts"
import { storeDevices } from "./StoredDevices.ts"
import { type CloudAddress, Tenant } from "./Tenant.ts"

const limits = { table: 300, plot: 50, frame: 1000 / 60, growth: 1.1 }
const many = 1_000_000
const points = 10_000
const rounds = 9
/** Events a second, for so long; memory is compared between a third of it and its end. */
const streaming = { perSecond: 1000, devices: 100, millis: 180_000 }
/** Looks at a memory that goes up and down, a second apart. */
const looks = 10
/** Memory is looked at so many times in an hour. */
const hour = { millis: 3_600_000, looks: 20 }

/** From a click until the rows of the table are drawn, other pages in between. */
const tableTimes = async (page: Page, site: string): Promise<ReadonlyArray<number>> => {
  await page.goto(`${site}/console/keys`)
  const millis: Array<number> = []
  for (let i = 0; i <= rounds; i++) {
    await page.locator("nav a[href='/console/keys']").click()
    await page.locator("main h1", { hasText: "Access keys" }).waitFor()
    const taken = await page.evaluate<number>(`new Promise((resolve) => {
      const from = performance.now()
      const drawn = () => document.querySelectorAll("main tbody a[href^='/console/devices/']").length >= 25
      const look = () => drawn() ? resolve(performance.now() - from) : requestAnimationFrame(look)
      document.querySelector("nav a[href='/console/devices']").click()
      look()
    })`)
    // The first one loads the code of the page.
    if (i > 0) millis.push(taken)
  }
  return millis
}

/** The plot of the console by itself. */
const plotScript = async (): Promise<string> => {
  const { outputFiles } = await build({
    stdin: {
      resolveDir: fileURLToPath(new URL("../../packages/console/app/", import.meta.url)),
      loader: "tsx",
      contents: `
        import { render } from "preact"
        import { Plot } from "./parts/Plot.tsx"
        globalThis.draw = async (count) => {
          const times = Array.from({ length: count }, (_, i) => 1.79e12 + i * 1000)
          const values = times.map((time, i) => 20 + Math.sin(i / 200) * 5 + Math.random())
          const place = document.createElement("div")
          place.style.width = "1200px"
          document.body.append(place)
          const from = performance.now()
          render(<Plot label="plot" times={times} lines={[{ title: "Temperature", values }]} />, place)
          await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))
          const taken = performance.now() - from
          render(null, place)
          place.remove()
          return taken
        }`
    },
    bundle: true,
    format: "iife",
    jsx: "automatic",
    jsxImportSource: "preact",
    outdir: "out",
    write: false,
    logLevel: "error"
  })
  return outputFiles.find(({ path }) => path.endsWith(".js"))!.text
}

const plotTimes = async (browser: Browser): Promise<ReadonlyArray<number>> => {
  const page = await browser.newPage()
  await page.addScriptTag({ content: await plotScript() })
  const millis: Array<number> = []
  for (let i = 0; i <= rounds; i++) {
    const taken = await page.evaluate<number>(`draw(${points})`)
    if (i > 0) millis.push(taken)
  }
  await page.close()
  return millis
}

/** Bytes that live in the page after everything else was collected: the least of some looks, as each sees work under way. */
const liveBytes = async (session: CDPSession): Promise<number> => {
  let least = Infinity
  for (let i = 0; i < looks; i++) {
    if (i > 0) await sleep(1000)
    await session.send("HeapProfiler.collectGarbage")
    least = Math.min(least, (await session.send("Runtime.getHeapUsage")).usedSize)
  }
  return least
}

/** Milliseconds between the frames of ten seconds. */
const frames = (page: Page): Promise<ReadonlyArray<number>> =>
  page.evaluate<ReadonlyArray<number>>(`new Promise((resolve) => {
    const times = []
    const next = (time) => {
      times.push(time)
      if (time - times[0] < 10_000) requestAnimationFrame(next)
      else resolve(times.slice(1).map((time, i) => time - times[i]))
    }
    requestAnimationFrame(next)
  })`)

/** Devices report for so long. */
const reports = ({ mqtt }: CloudAddress, devices: ReadonlyArray<LoadDevice>, millis: number) =>
  load({
    port: Number(new URL(mqtt).port),
    devices,
    job: {
      kind: "ingest",
      qos: 1,
      window: 10,
      subscribe: false,
      perSecond: streaming.perSecond,
      warmupMillis: 1000,
      measureMillis: millis
    }
  })

/** The page of events while reports come in. */
const stream = async (page: Page, address: CloudAddress, devices: ReadonlyArray<LoadDevice>) => {
  await page.goto(`${address.http}/console/events`)
  const session = await page.context().newCDPSession(page)
  const loading = reports(address, devices, streaming.millis)
  await sleep(streaming.millis / 3)
  const before = await liveBytes(session)
  const between = await frames(page)
  await sleep(streaming.millis * 0.4)
  const after = await liveBytes(session)
  const { count, seconds } = await loading
  return { between, growth: after / before, perSecond: Math.round(count / seconds) }
}

/** A browser that is signed in, and devices that can report. */
const prepare = async (browser: Browser, address: CloudAddress) => {
  const tenant = new Tenant({ ...address, key: ownerKey })
  const devices = await tenant.createDevices(await tenant.createProduct("streaming"), streaming.devices)
  const context = await browser.newContext({ locale: "en-US", viewport: { width: 1280, height: 900 } })
  await context.request.post(`${address.http}/openapi/v1/browser-sessions`, {
    headers: { "x-csrf-protection": "1" },
    data: { access_key: ownerKey }
  })
  return { context, devices }
}

type Measure = (browser: Browser, said: CloudAddress, query: Query) => Promise<ReadonlyArray<Row>>

const measure: Measure = async (browser, said, query) => {
  const { context, devices } = await prepare(browser, said)
  await storeDevices(query, devices[0]!.deviceId, many)
  const page = await context.newPage()
  const table = await tableTimes(page, said.http)
  const plot = await plotTimes(browser)
  const { between, growth, perSecond } = await stream(page, said, devices)
  if (perSecond < streaming.perSecond * 0.95) throw new Error(`${perSecond} events a second`)
  return [
    { scenario: "the table of devices, 1 M devices", unit: "ms", limit: limits.table, values: table },
    { scenario: `a plot of ${points} points`, unit: "ms", limit: limits.plot, values: plot },
    // Half a millisecond: the clock of the browser is no finer.
    {
      scenario: `a frame, ${streaming.perSecond} events a second`,
      unit: "ms",
      limit: limits.frame + 0.5,
      values: between
    },
    {
      scenario: `live memory after ${streaming.millis / 1000} s of them`,
      unit: "times that of a third of it",
      limit: limits.growth,
      values: [growth]
    }
  ].map((row) => within({ benchmark: "console", ...row }))
}

/** Live memory in the second half of the hour, beside its median in the first quarter. */
const measureHour: Measure = async (browser, said) => {
  const { context, devices } = await prepare(browser, said)
  const pages = ["/events", "", `/devices/${devices[0]!.deviceId}/data?range=hour`]
  const sessions = await Promise.all(pages.map(async (path) => {
    const page = await context.newPage()
    await page.goto(`${said.http}/console${path}`)
    return context.newCDPSession(page)
  }))
  const series = pages.map((): Array<number> => [])
  const loading = reports(said, devices, hour.millis)
  for (let look = 1; look <= hour.looks; look++) {
    await sleep(hour.millis / hour.looks - looks * 1000)
    const live = await Promise.all(sessions.map(liveBytes))
    live.forEach((bytes, index) => series[index]!.push(bytes))
    const mebibytes = series.map((values) => (values.at(-1)! / 2 ** 20).toFixed(1)).join(", ")
    process.stderr.write(`${new Date().toISOString()} live memory of the pages in MiB: ${mebibytes}\n`)
  }
  const { count, seconds } = await loading
  if (count / seconds < streaming.perSecond * 0.95) throw new Error(`${Math.round(count / seconds)} events a second`)
  return series.map((values, index) => {
    const before = median(values.slice(0, hour.looks / 4))
    return within({
      benchmark: "console-hour",
      // A device has an id of its own in each run.
      scenario: `${["events", "overview", "data of a device"][index]}, ${streaming.perSecond} events a second`,
      unit: "times its first quarter of an hour",
      limit: limits.growth,
      values: values.slice(hour.looks / 2).map((value) => value / before)
    })
  })
}

const withConsole = (measure: Measure): Promise<ReadonlyArray<Row>> =>
  withDatabase((databaseUrl, query) =>
    withDirectory(async (directory) => {
      const { end, said } = await startReferenceServer({
        directory,
        databaseUrl,
        env: { UPLINK_RATE_PROJECT: "off", UPLINK_RATE_DEVICE: "off" }
      })
      const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] })
      try {
        return await measure(browser, said, query)
      } finally {
        await browser.close()
        await end("SIGTERM")
      }
    })
  )

export const consolePages: ReadonlyArray<Part> = [() => withConsole(measure)]
export const consoleHour: ReadonlyArray<Part> = [() => withConsole(measureHour)]
