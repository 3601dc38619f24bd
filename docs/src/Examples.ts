/** Examples that are carried out against a server. CONTRIBUTING.md says how a page marks them. */
import mqtt from "mqtt"
import { type ChildProcess, spawn } from "node:child_process"
import { createHmac } from "node:crypto"
import { once } from "node:events"
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import type { Block, Page } from "./Blocks.ts"
import type { ExampleServer } from "./ExampleServer.ts"
import { differences } from "./Expected.ts"
import { root } from "./Pages.ts"

/** The triple that all pages show, and what stands for it while examples run. */
const shown = {
  product_key: "a1B2c3D4e5F",
  device_name: "thermostat01",
  device_secret: "0123456789abcdef0123456789abcdef"
}

/** How long a message of the cloud may take, in milliseconds. */
const patience = 10_000

/** Whether an example is carried out: its info says more than its language. */
export const isExample = ({ does }: Block): boolean => does !== ""

/** Carries out the examples of a page in their order, in a project of its own. Returns what did not come out as shown. */
export const broken = async (
  page: Page,
  server: ExampleServer,
  snippets: ReadonlyMap<Block, string>
): Promise<ReadonlyArray<string>> => {
  const known: Record<string, string> = {}
  const shell = mkdtempSync(join(tmpdir(), "device-cloud-example-"))
  const processes: Array<ChildProcess> = []
  const inbox: Array<{ readonly topic: string; readonly text: string }> = []
  let device: mqtt.MqttClient | undefined
  let last = { status: 0, text: "" }

  const call = async (method: string, path: string, body: string, key = known["key"]!) => {
    const response = await fetch(`${server.http}/openapi/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      ...body === "" ? {} : { body }
    })
    last = { status: response.status, text: await response.text() }
    return last.text === "" ? {} : JSON.parse(last.text).data ?? {}
  }

  /** Puts what is real in the place of what the page shows. */
  const real = (text: string): string =>
    Object.entries(shown)
      .reduce((result, [name, value]) => result.replaceAll(value, known[name] ?? value), text)
      .replaceAll(/\{(\w+)\}/g, (whole, name) => known[name] ?? whole)
      .replaceAll("http://127.0.0.1:8080", server.http)
      .replaceAll(/\b8883\b/g, new URL(server.mqtts).port)

  const topic = (name: string) => real(name.replace(/^~/, "/sys/{product_key}/{device_name}"))

  const connect = async () => {
    if (device !== undefined) return device
    const signed = `clientIdlampdeviceName${known["device_name"]}productKey${known["product_key"]}`
    const client = mqtt.connect(server.mqtts, {
      clientId: "lamp|signmethod=hmacsha1,authType=1|",
      username: `${known["device_name"]}&${known["product_key"]}`,
      password: createHmac("sha1", known["device_secret"]!).update(signed).digest("hex"),
      ca: readFileSync(join(server.directory, "tls/ca.pem")),
      reconnectPeriod: 0
    })
    client.on("message", (to, payload) => inbox.push({ topic: to, text: payload.toString() }))
    await new Promise<void>((resolve, reject) => client.once("connect", () => resolve()).once("error", reject))
    device = client
    return client
  }

  /** Runs a program with the variables that the programs before it have left. */
  const run = async (script: string): Promise<string> => {
    const child = spawn(
      "bash",
      ["-euo", "pipefail", "-c", `set -a; . ./.variables; ${script}\nexport -p > .variables`],
      {
        cwd: shell,
        detached: true,
        stdio: ["ignore", "pipe", "pipe"]
      }
    )
    processes.push(child)
    const output: Record<"stdout" | "stderr", string> = { stdout: "", stderr: "" }
    child.stdout.on("data", (text) => (output.stdout += text))
    child.stderr.on("data", (text) => (output.stderr += text))
    const [code] = await once(child, "exit")
    await setTimeout(20)
    if (code !== 0) throw new Error(`ended with ${code}: ${output.stderr.trim()} ${output.stdout.trim()}`)
    return output.stdout
  }

  const compare = (block: Block, came: string): void => {
    if (block.language !== "json") {
      const parts = real(block.text).trim().split("…").map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"))
      if (!new RegExp(`^${parts.join("[^]*")}$`).test(came.trim())) throw new Error(`has come: ${came}`)
      return
    }
    const found = differences(JSON.parse(real(block.text)), JSON.parse(came))
    if (found.length > 0) throw new Error(found.join("; "))
  }

  const carryOut = async (block: Block): Promise<void> => {
    const [verb = "", argument = ""] = block.does.split(" ")
    switch (verb) {
      case "sends": {
        await (await connect()).publishAsync(topic(argument), real(block.text), { qos: 1 })
        return
      }
      case "receives": {
        await connect()
        for (const end = Date.now() + patience; Date.now() < end; await setTimeout(10)) {
          const index = inbox.findIndex((message) => message.topic === topic(argument))
          if (index >= 0) return compare(block, inbox.splice(index, 1)[0]!.text)
        }
        throw new Error(`nothing has come on ${topic(argument)}, but on ${inbox.map((message) => message.topic)}`)
      }
      case "response": {
        if (last.status !== Number(argument || 200)) throw new Error(`the response was ${last.status} ${last.text}`)
        return compare(block, last.text)
      }
      case "output": {
        return compare(block, last.text)
      }
      case "run": {
        if (block.language === "sh") last = { status: 0, text: await run(real(block.text)) }
        if (block.language === "python") {
          writeFileSync(join(shell, "example.py"), real(block.text))
          last = { status: 0, text: await run("python3 example.py") }
        }
        if (block.language === "ts") {
          const file = join(root, snippets.get(block)!.replace(/\.ts$/, ".run.ts"))
          writeFileSync(file, real(readFileSync(join(root, snippets.get(block)!), "utf8")))
          last = { status: 0, text: await run(`(cd "${root}" && node --import tsx "${file}")`) }
        }
        return
      }
      default: {
        if (!/^(GET|POST|PUT|PATCH|DELETE)$/.test(verb)) throw new Error(`an example cannot "${block.does}"`)
        const data = await call(verb, real(argument), real(block.text))
        for (const [name, value] of Object.entries(data)) {
          if (typeof value === "string" || typeof value === "number") known[name] = String(value)
        }
      }
    }
  }

  try {
    const { id } = await call("POST", "/projects", JSON.stringify({ name: page.file }), server.key)
    const access = JSON.stringify({ name: page.file, role: "admin", project_id: id })
    known["key"] = (await call("POST", "/access-keys", access, server.key)).key
    const { product_info: product } = await call(
      "POST",
      "/products",
      JSON.stringify({
        name: "Thermostat",
        node_type: "direct",
        network_type: "wifi",
        validate_type: "weak",
        data_format: "json",
        auth_type: "secret",
        dynamic_register: true
      })
    )
    const { product_key, product_secret } = product
    await call(
      "POST",
      `/products/${product_key}/thing-model`,
      JSON.stringify({
        model_type: "metadata",
        model_data: readFileSync(join(root, "docs/examples/thermostat.json"), "utf8")
      })
    )
    const thing = await call("POST", `/products/${product_key}/things`, `{"device_name":"${shown.device_name}"}`)
    Object.assign(known, { product_key, product_secret, device_name: shown.device_name })
    Object.assign(known, { device_id: thing.device_id, device_secret: thing.device_secret })
    symlinkSync(server.directory, join(shell, ".device-cloud"))
    writeFileSync(
      join(shell, ".variables"),
      [["PATH", process.env["PATH"]], ["KEY", known["key"]], ["API", `${server.http}/openapi/v1`]]
        .concat(
          ["product_key", "device_name", "device_secret", "device_id"].map((name) => [name.toUpperCase(), known[name]])
        )
        .map(([name, value]) => `export ${name}='${value}'`).join("\n")
    )
    const problems: Array<string> = []
    for (const block of page.blocks.filter(isExample)) {
      try {
        await carryOut(block)
      } catch (failure) {
        problems.push(`${page.file}:${block.line}: ${block.language} ${block.does}: ${(failure as Error).message}`)
      }
    }
    return problems
  } finally {
    device?.end(true)
    for (const { pid } of processes) {
      try {
        process.kill(-pid!)
      } catch {
        // It has ended.
      }
    }
    rmSync(shell, { recursive: true, force: true })
  }
}
