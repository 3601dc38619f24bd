/** Examples that are carried out against a server. CONTRIBUTING.md says how a page marks them. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import type { Block, Page } from "./Blocks.ts"
import { connect, type Device } from "./Device.ts"
import type { ExampleServer } from "./ExampleServer.ts"
import { differences, fits } from "./Expected.ts"
import * as Fixture from "./Fixture.ts"
import * as Hooks from "./Hooks.ts"
import { root } from "./Pages.ts"
import * as Shell from "./Shell.ts"

const deviceTopics = "/sys/a1B2c3D4e5F/thermostat01"
const gatewayTopics = "/sys/g9H8i7J6k5L/gateway01"

/** How long a message of the cloud, or a state, may take to come, in milliseconds. */
const patience = 10_000

/** What is looked at without being carried out, see `Check.ts`. */
const still = /^(commands|vectors|tested|unchecked)\b/

/** Whether an example is carried out: its info says more than its language. */
export const isExample = ({ does }: Block): boolean => does !== "" && !still.test(does)

/** Returns all texts and numbers of `data` by their names, those of objects in it too. */
const scalars = (data: object): ReadonlyArray<readonly [string, string]> =>
  Object.entries(data).flatMap(([name, value]) => {
    if (typeof value === "string" || typeof value === "number") return [[name, String(value)]]
    return value !== null && typeof value === "object" && !Array.isArray(value) ? scalars(value) : []
  })

/** Returns a request that is written as it goes over the wire; a line that begins with a space continues the one before. */
const parse = (text: string) => {
  const [head = "", ...body] = text.split("\n\n")
  const [first = "", ...headers] = head.replaceAll(/\n +/g, "").split("\n")
  const [method = "", path = ""] = first.split(" ")
  return { method, path, headers: headers.map((line) => line.split(": ") as [string, string]), body: body.join("\n\n") }
}

/** Returns the commands of a terminal, `$ ` before each, and what each prints. */
const commandsOf = (text: string): ReadonlyArray<{ readonly command: string; readonly printed: string }> =>
  text.split(/^\$ /m).slice(1).map((part) => {
    const [, command = "", printed = ""] = /^((?:.*\\\n)*.*)\n?([^]*)$/.exec(part)!
    return { command, printed: printed.trim() }
  })

/** Returns the JSON values of a block: one, or one on each line. */
const valuesOf = (text: string): ReadonlyArray<string> => {
  const lines = text.trim().split("\n")
  return lines.length > 1 && lines.every((line) => /^[{[].*[}\]]$/.test(line)) ? lines : [text]
}

/** Returns what the program does again and again until it does not fail, or patience is over. */
const eventually = async (program: () => Promise<void> | void): Promise<void> => {
  for (const end = Date.now() + patience;; await setTimeout(20)) {
    try {
      return await program()
    } catch (failure) {
      if (Date.now() > end) throw failure
    }
  }
}

/** Carries out the examples of a page in their order, in a project of its own. Returns what did not come out as shown. */
export const broken = async (
  page: Page,
  server: ExampleServer,
  snippets: ReadonlyMap<Block, string>
): Promise<ReadonlyArray<string>> => {
  const connected = new Map<string, Promise<Device>>()
  let speaker = "thermostat01"
  let key = ""
  let wrapper = ""
  /** What has come last, and how to read it again. */
  let last: { readonly status: number; readonly text: string; readonly again?: () => Promise<unknown> } = {
    status: 0,
    text: ""
  }

  const request = async (method: string, url: string, body: string, headers: ReadonlyArray<[string, string]>) => {
    const response = await fetch(url, { method, headers: [...headers], ...body === "" ? {} : { body } })
    last = {
      status: response.status,
      text: await response.text(),
      ...method === "GET" ? { again: () => request(method, url, body, headers) } : {}
    }
  }

  const call: Fixture.Call = async (method, path, body, otherKey = key) => {
    await request(method, path.startsWith("http") ? path : `${server.http}/openapi/v1${path}`, body, [
      ["authorization", `Bearer ${otherKey}`],
      ["content-type", "application/json"]
    ])
    return last.text.startsWith("{") ? JSON.parse(last.text).data ?? {} : {}
  }

  const hooks = await Hooks.start()
  const fixture = await Fixture.make(page, server, hooks.url, call)
  const { known, real } = fixture
  key = fixture.key
  const shell = Shell.open(server, key, known, 3 * patience)
  fixture.shows("/home/ada", shell.directory)

  /** Knows the texts and numbers of a JSON document by their names. */
  const learn = (text: string): void => {
    for (const value of valuesOf(text)) {
      if (/^\s*\{\s*["}]/.test(value)) { for (const [name, scalar] of scalars(JSON.parse(value))) known[name] = scalar }
    }
  }

  /** The device whose names a topic has; `~` is the one that speaks. A gateway speaks for its sub-devices. */
  const deviceOf = (topic: string): Promise<Device> => {
    const name = /gateway01|sensor01/.test(topic) || topic.startsWith("~") && speaker === "gateway01"
      ? "gateway01"
      : "thermostat01"
    const found = connected.get(name) ?? connect(server, fixture.devices.get(name)!)
    connected.set(name, found)
    return found
  }

  const topicOf = (topic: string) => real(topic.replace(/^~/, speaker === "gateway01" ? gatewayTopics : deviceTopics))

  const compare = (block: Block, came: string, path = ""): void => {
    const shape = block.does.endsWith(" shape")
    if (block.language !== "json") {
      if (!fits(shape ? block.text : real(block.text), came, shape)) throw new Error(`has come: ${came}`)
      return
    }
    const values = valuesOf(came)
    const found = valuesOf(real(block.text)).flatMap((text, index) => {
      const whole = JSON.parse(values[index] ?? "null")
      const part = path === "" ? whole : path.split(".").reduce((value, member) => value?.[member], whole)
      return part === undefined ? [`has come: ${came}`] : differences(JSON.parse(text), part, shape)
    })
    if (found.length > 0) throw new Error(found.join("; "))
  }

  /** Compares with what has come last. A state may still be on its way: it is read again. */
  const compareLast = (block: Block, status: number, path?: string) => {
    const once = () => {
      if (last.status !== status) throw new Error(`the response was ${last.status} ${last.text}`)
      if (block.text !== "") compare(block, last.text, path)
    }
    const { again } = last
    if (again === undefined) return once()
    return eventually(async () => {
      try {
        once()
      } catch (failure) {
        await again()
        throw failure
      }
    })
  }

  const carryOut = async (block: Block, next: Block | undefined): Promise<void> => {
    const [verb = "", argument = ""] = block.does.split(" ")
    switch (verb) {
      case "as": {
        if (argument === "owner" || argument === "admin") key = argument === "owner" ? server.key : fixture.key
        else speaker = argument
        return
      }
      case "shows": {
        const value = known[argument]
        if (value === undefined) throw new Error(`nothing is known of ${argument}`)
        fixture.shows(block.text, JSON.stringify(value).slice(1, -1))
        return
      }
      case "wraps": {
        wrapper = `${argument} ${block.text}`
        return
      }
      case "sends": {
        const device = await deviceOf(argument)
        for (const text of valuesOf(block.text)) await device.publish(topicOf(argument), real(text))
        return
      }
      case "receives": {
        const { inbox } = await deviceOf(argument)
        const wanted = new RegExp(`^${topicOf(argument).replaceAll("+", "[^/]+")}$`)
        await eventually(() => {
          const index = inbox.findIndex(({ topic }) => wanted.test(topic))
          if (index < 0) throw new Error(`nothing has come on ${topicOf(argument)}: ${JSON.stringify(inbox)}`)
          const { text, topic } = inbox.splice(index, 1)[0]!
          last = { status: 0, text }
          learn(text)
          known["topic"] = topic
        })
        return block.text === "" ? undefined : compare(block, last.text)
      }
      case "webhook": {
        await eventually(() => {
          if (hooks.bodies.length === 0) throw new Error("no webhook has come")
        })
        return compare(block, hooks.bodies.shift()!)
      }
      case "response": {
        return compareLast(block, Number(/\d+/.exec(argument)?.[0] ?? 200))
      }
      case "part": {
        return compareLast(block, last.status === 0 ? 0 : 200, argument)
      }
      case "file": {
        writeFileSync(join(shell.directory, argument), `${real(block.text)}\n`)
        return
      }
      case "session": {
        const shape = block.does.endsWith(" shape")
        for (const { command, printed: shown } of commandsOf(block.text)) {
          const printed = shape ? shown : real(shown)
          const came = await shell.type(real(command), (text) => /[^…\s]/.test(printed) && fits(printed, text, shape))
          if (!fits(printed, came, shape)) throw new Error(`${command}: has come: ${came}`)
        }
        return
      }
      case "output": {
        return compare(block, last.text)
      }
      case "run": {
        if (!/^(sh|python|ts|http)$/.test(block.language)) throw new Error(`nothing runs ${block.language}`)
        if (block.language === "sh") last = { status: 0, text: await shell.run(real(block.text)) }
        if (block.language === "python") {
          writeFileSync(join(shell.directory, "example.py"), real(block.text))
          last = { status: 0, text: await shell.run("python3 example.py") }
        }
        if (block.language === "ts") {
          const file = join(root, snippets.get(block)!.replace(/\.ts$/, ".run.ts"))
          writeFileSync(file, real(readFileSync(join(root, snippets.get(block)!), "utf8")))
          last = { status: 0, text: await shell.run(`(cd "${root}" && node --import tsx "${file}")`) }
        }
        if (block.language === "http") {
          const { body, headers, method, path } = parse(real(block.text))
          const own = path.startsWith("/openapi/v1/") && !path.includes("thing-uplink")
          await request(method, `${server.http}${path}`, body, [
            ...own ? [["authorization", `Bearer ${key}`] as [string, string]] : [],
            ...headers
          ])
        }
        learn(last.text)
        return
      }
      default: {
        if (!/^(GET|POST|PUT|PATCH|DELETE)$/.test(verb)) throw new Error(`an example cannot "${block.does}"`)
        const body = real(block.text)
        const wrapped = wrapper.replace("text of …", () => JSON.stringify(body).slice(1, -1)).replace(`"…"`, () => body)
        wrapper = ""
        learn(JSON.stringify(await call(verb, real(argument), wrapped || body)))
        if (last.status >= 400 && !/^response \d/.test(next?.does ?? "")) throw new Error(last.text)
      }
    }
  }

  try {
    const problems: Array<string> = []
    const examples = page.blocks.filter(isExample)
    for (const [index, block] of examples.entries()) {
      try {
        await carryOut(block, examples[index + 1])
      } catch (failure) {
        problems.push(`${page.file}:${block.line}: ${block.language} ${block.does}: ${(failure as Error).message}`)
      }
    }
    return problems
  } finally {
    hooks.close()
    for (const device of connected.values()) (await device).end()
    shell.end()
  }
}
