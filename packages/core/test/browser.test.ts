import { assert, it } from "@effect/vitest"
import { build } from "esbuild"
import { readFile } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import { gzipSync } from "node:zlib"
import { chromium } from "playwright-core"
import { beforeAll } from "vitest"
import { chromiumPath } from "../../../vitest.browser.ts"

const pathOf = (path: string) => fileURLToPath(new URL(path, import.meta.url))

/** A page for browsers, minified. Its exports are those of the global `page`. */
const bundle = async (): Promise<string> => {
  const { outputFiles } = await build({
    entryPoints: [pathOf("./browser/page.ts")],
    bundle: true,
    minify: true,
    format: "iife",
    globalName: "page",
    platform: "browser",
    target: "es2023",
    conditions: ["device-cloud-source"],
    write: false
  })
  return outputFiles[0]!.text
}

let bundled = ""
beforeAll(async () => {
  bundled = await bundle()
})

it.runIf(chromiumPath !== undefined)("a page in a browser has the whole cloud in itself", async () => {
  const browser = await chromium.launch({ executablePath: chromiumPath!, args: ["--no-sandbox"] })
  try {
    const page = await browser.newPage()
    const failures: Array<string> = []
    page.on("pageerror", (error) => failures.push(error.message))
    await page.addScriptTag({ content: bundled })
    assert.deepStrictEqual(await page.evaluate("page.run()"), { code: 200, status: "online", power: 1 })
    assert.deepStrictEqual(failures, [])
  } finally {
    await browser.close()
  }
})

it("has in a bundle the size that the README says", async () => {
  const size = gzipSync(bundled).length / 1000
  const [, said] = /(\d+) kB with gzip/.exec(await readFile(pathOf("../README.md"), "utf8")) ?? []
  assert.closeTo(size, Number(said), 0.1 * size)
})
