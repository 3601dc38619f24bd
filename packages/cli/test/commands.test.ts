import * as StorageMemory from "@device-cloud/storage-memory"
import { createDevice, createProduct, ownerKey, testApi } from "@device-cloud/testing/http"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { afterAll, assert, layer } from "@effect/vitest"
import { Console, Effect } from "effect"
import { chmod, mkdir, mkdtemp, readFile, rename, rm, stat, writeFile } from "node:fs/promises"
import { createServer, type RequestListener } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { buffer } from "node:stream/consumers"
import { ShowSecret } from "../src/GlobalFlags.ts"
import * as Output from "../src/Output.ts"
import { resources } from "../src/Resources.ts"
import { cli, json, runWith, serverUrl } from "./Cli.ts"

const folders: Array<string> = []

const temporary = (name: string, content = "") =>
  Effect.promise(async () => {
    const folder = await mkdtemp(join(tmpdir(), "device-cloud-cli-"))
    folders.push(folder)
    await writeFile(join(folder, name), content)
    return join(folder, name)
  })

afterAll(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true }))))

/** Serves on a port of this machine until the scope closes. Returns the URL. */
const serving = Effect.fnUntraced(function*(listener: RequestListener) {
  const server = createServer(listener)
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
    () => Effect.sync(() => server.close())
  )
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})

layer(testApi(StorageMemory.layer), { excludeTestServices: true })("commands", (it) => {
  it.effect("a product is created, listed, changed and deleted", () =>
    Effect.gen(function*() {
      const flags = "--node-type direct --network-type wifi --validate-type weak --data-format json --auth-type secret"
      const created = yield* json("products", "create", "--name", "Heater", ...flags.split(" "))
      const { product_key } = created.product_info
      const listed = yield* cli("products", "list")
      assert.match(listed.out, /^PRODUCT KEY +NAME/)
      assert.match(listed.out, new RegExp(`^${product_key} +Heater +direct`, "m"))
      assert.strictEqual((yield* cli("products", "update", product_key, "--description", "warm")).code, 0)
      const { product_info } = yield* json("products", "get", product_key)
      assert.deepInclude(product_info, { name: "Heater", description: "warm" })
      assert.strictEqual((yield* cli("products", "delete", product_key)).code, 0)
      const gone = yield* cli("products", "get", product_key)
      assert.strictEqual(gone.code, 1)
      assert.match(gone.error, /There is no product .* \(40401\)/)
    }))

  it.effect("what is missing, unknown or not JSON is a usage failure, and nothing is sent", () =>
    Effect.gen(function*() {
      const missing = yield* cli("products", "create", "--name", "Heater")
      assert.strictEqual(missing.code, 2)
      assert.match(missing.error, /--node-type, --validate-type, --data-format, --auth-type: missing/)
      assert.strictEqual((yield* cli("products", "lst")).code, 2)
      assert.strictEqual((yield* cli("scenes", "create", "--triggers", "{")).code, 2)
      assert.strictEqual((yield* cli("devices", "set", "a/b", "no-equals-sign")).code, 1)
    }))

  it.effect("an argument that is empty or dots is refused, and never leads to another operation", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      const device = `${product_key}/keeper01`
      yield* json("devices", "create", product_key, "--device-name", "keeper01")
      for (
        const args of [
          ["commands", "cancel", device, ".."],
          ["certificates", "revoke", device, ".."],
          ["products", "get", ""],
          ["products", "get", "."],
          ["devices", "get", `${product_key}/..`]
        ]
      ) {
        const { code, error } = yield* cli(...args)
        assert.strictEqual(code, 2)
        assert.match(error, /^[a-z-]+ must name something, not "\.*"$/)
      }
      assert.strictEqual((yield* json("devices", "get", device)).device_info.device_name, "keeper01")
    }))

  it.effect("a file that cannot be read or written is named, with the reason", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      const missing = "/nonexistent/file"
      for (
        const args of [
          ["devices", "create", product_key, "--data", `@${missing}`],
          ["devices", "import", missing, "--product", product_key],
          ["models", "import", product_key, missing],
          ["models", "diff", product_key, missing],
          ["firmware", "upload", product_key, missing, "1.0.0"],
          ["doctor", "--ca", missing]
        ]
      ) {
        const { code, error } = yield* cli(...args)
        assert.strictEqual(code, 2, args.join(" "))
        assert.match(error, /^\/nonexistent\/file cannot be read: .*no such file/, args.join(" "))
      }
      for (
        const args of [
          ["types", product_key, "--out", missing],
          ["models", "export", product_key, "--out", missing],
          ["devices", "export", "--out", missing]
        ]
      ) {
        const { code, error } = yield* cli(...args)
        assert.strictEqual(code, 1, args.join(" "))
        assert.match(error, /^\/nonexistent\/file cannot be written: .*no such file/, args.join(" "))
      }
    }))

  it.effect("a model that is no model is refused with a sentence", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      for (const document of ["null", "[]", "5"]) {
        const file = yield* temporary("model.json", document)
        for (const command of ["import", "diff"]) {
          const { code, error } = yield* cli("models", command, product_key, file)
          assert.strictEqual(code, 2)
          assert.strictEqual(error, `${file} is not a JSON object`)
        }
      }
      for (const properties of ["5", "[null]"]) {
        const file = yield* temporary("model.json", `{"properties":${properties}}`)
        for (const command of ["import", "diff"]) {
          const { code, error } = yield* cli("models", command, product_key, file)
          assert.strictEqual(code, 1)
          assert.match(error, /properties.*expected/)
        }
      }
    }))

  it.effect("secrets are masked unless they are asked for", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      const { device_secret } = yield* createDevice(product_key, { device_name: "lamp" })
      const reference = `${product_key}/lamp`
      for (const format of [[], ["--json"]]) {
        assert.notInclude((yield* cli("devices", "get", reference, ...format)).out, device_secret!)
        assert.include((yield* cli("devices", "get", reference, "--show-secret", ...format)).out, device_secret!)
      }
      const webhook = ["--webhook", `{"url":"https://example.com/hook?token=t0k3n"}`]
      const subscribed = yield* cli("subscriptions", "create", "--name", "hook", ...webhook)
      assert.strictEqual(subscribed.code, 0, subscribed.error)
      assert.notInclude(subscribed.out, "t0k3n")
      assert.include((yield* cli("subscriptions", "list", "--show-secret", "--json")).out, "t0k3n")
      const { app_key, network_key } = yield* json("mesh", "create", "--show-secret")
      for (const args of [["mesh", "list"], ["mesh", "get", network_key]]) {
        for (const format of [[], ["--json"]]) {
          const { out } = yield* cli(...args, ...format)
          assert.notInclude(out, network_key)
          assert.notInclude(out, app_key)
        }
        assert.include((yield* cli(...args, "--show-secret")).out, network_key)
      }
      const refused = yield* cli("keys", "create", "--name", "back end", "--role", "viewer")
      assert.strictEqual(refused.code, 2)
      const before = yield* json("keys", "list")
      const created = yield* json("keys", "create", "--name", "back end", "--role", "viewer", "--show-secret")
      assert.match(created.key, /^dck_/)
      assert.strictEqual((yield* json("keys", "list")).total, before.total + 1)
    }))

  it.effect("the triples of a batch have their secrets if they are asked for", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      const { batch_id } = yield* json("batches", "create", product_key, "--num", "2")
      const triples = ["batches", "get", product_key, String(batch_id), "--format", "csv"]
      const masked = yield* cli(...triples)
      assert.match(
        masked.out,
        /^product_key,device_name,device_secret,device_id(\r\n\w+,\w+,\*{8},\w+){2}$/
      )
      assert.match((yield* cli(...triples, "--show-secret")).out, /(\r\n\w+,\w+,\w{32},\w+){2}$/)
    }))

  it.effect("a list says how to read on, and one of texts has one in a line", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      const { next_cursor } = yield* json("audit", "list", "--limit", "1", "--action", "products.createProduct")
      const page = yield* cli("audit", "list", "--limit", "1", "--action", "products.createProduct")
      assert.strictEqual(page.error, `next cursor: ${next_cursor}`)
      const { subscription_id } = yield* json("subscriptions", "create", "--name", "reader")
      yield* createDevice(product_key)
      const events = yield* cli("subscriptions", "read", String(subscription_id), "--wait", "20")
      assert.match(events.out, / lifecycle$/)
      const cursor = /^cursor: (.+)$/m.exec(events.error)?.[1]
      assert.strictEqual((yield* cli("subscriptions", "ack", String(subscription_id), "--cursor", cursor!)).code, 0)
      const times = yield* cli("scenes", "next-times", "--cron", "0 0 * * *", "--count", "2")
      assert.match(times.out, /^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\n?){2}$/)
      assert.strictEqual(times.error, "time zone: UTC")
    }))

  it.effect("a device gets properties, tags and desired values as name=value", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      const { device_id } = yield* createDevice(product_key, { device_name: "lamp" })
      yield* cli("devices", "set", `${product_key}/lamp`, "power=1", "name=desk", "colors=[1,2]")
      const { results } = yield* json("commands", "list", device_id)
      assert.deepStrictEqual(results[0].params, { power: 1, name: "desk", colors: [1, 2] })
      yield* cli("devices", "tag", device_id, "room=1")
      // What the cloud refuses is sent, too, not left out.
      assert.match((yield* cli("devices", "tag", device_id, "__proto__=x")).error, /^tags: .* \(40001\)$/)
      assert.deepStrictEqual((yield* json("devices", "get", device_id)).device_info.tags, { room: "1" })
      yield* cli("shadows", "set", device_id, "power=0")
      assert.strictEqual((yield* json("shadows", "get", device_id)).thing_shadow.state.desired.power, 0)
      const other = yield* cli("shadows", "set", device_id, "power=1", "--version", "99")
      assert.match(other.error, /in version \d+ \(40904\)/)
    }))

  it.effect("a number that is too large is a usage failure: it is no null, which would remove what is desired, nor its neighbour", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      const { device_id } = yield* createDevice(product_key)
      yield* cli("shadows", "set", device_id, "power=5")
      const huge = `{"properties":[{"id":"a","name":"A","accessMode":"r","dataType":{"type":"float","max":1e999}}]}`
      for (
        const args of [
          ["shadows", "set", device_id, "power=1e999"],
          ["shadows", "set", device_id, "power=[{\"deep\":-1e999}]"],
          ["shadows", "set", device_id, "power=9007199254740993"],
          ["shadows", "set", device_id, "power=[{\"\\\"deep\":-9007199254740993}]"],
          ["scenes", "create", "--triggers", "[1e999]"],
          ["jobs", "create", "--data", `{"document":{"power":1e999}}`],
          ["models", "import", product_key, yield* temporary("model.json", huge)]
        ]
      ) {
        const { code, error } = yield* cli(...args)
        assert.strictEqual(code, 2)
        assert.match(error, /A number is too large/)
      }
      const { thing_shadow } = yield* json("shadows", "get", device_id)
      assert.deepStrictEqual(thing_shadow.state.desired, { power: 5 })
      // A bound of a vendor's model may be rounded.
      const bounded = huge.replace("1e999", "18446744073709551615")
      const file = yield* temporary("bounded.json", bounded)
      assert.strictEqual((yield* cli("models", "import", (yield* createProduct()).product_key, file)).code, 0)
      // Numbers that are sent as they are, and texts that look like others.
      const fine = { power: [9007199254740992, -1e20, 0.1], name: "9007199254740993" }
      yield* cli(
        "shadows",
        "set",
        device_id,
        ...Object.entries(fine).map(([id, of]) => `${id}=${JSON.stringify({ of })}`)
      )
      const { thing_shadow: after } = yield* json("shadows", "get", device_id)
      assert.deepInclude(after.state.desired, { power: { of: fine.power }, name: { of: fine.name } })
    }))

  it.effect("every command says what it takes", () =>
    Effect.gen(function*() {
      for (const [resource, { commands }] of Object.entries(resources)) {
        for (const name of Object.keys(commands)) {
          const { code, error } = yield* cli(resource, name, "--help")
          assert.strictEqual(code, 0, `${resource} ${name}: ${error}`)
        }
      }
    }))

  it.effect("a device gets bytes", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      const { device_id } = yield* createDevice(product_key, { device_name: "lamp" })
      const { message_id } = yield* json(
        "devices",
        "send-raw",
        `${product_key}/lamp`,
        "--data",
        "a10700",
        "--ttl",
        "60"
      )
      assert.isString(message_id)
      const { results } = yield* json("commands", "list", device_id)
      assert.deepInclude(results[0], { message_id, state: "queued" })
      assert.match((yield* cli("devices", "send-raw", device_id)).error, /^--data: missing$/)
    }))

  it.effect("--all reads every page", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      yield* json("batches", "create", product_key, "--num", "205")
      const page = yield* cli("devices", "list", "--product-key", product_key, "--page-size", "100")
      assert.match(page.error, /Page 1 of 3; 205 in all/)
      const { results } = yield* json("devices", "list", "--product-key", product_key, "--all")
      assert.strictEqual(new Set(results.map((device: { device_id: string }) => device.device_id)).size, 205)
    }))

  it.effect("a thing model is imported in each form that is exported", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      const metadata = {
        properties: [{
          id: "Temperature",
          name: "Temperature",
          accessMode: "r",
          dataType: { type: "float", min: -40, max: 80, step: 0.5, unit: "°C" }
        }]
      }
      const imported = yield* cli("models", "import", product_key, yield* temporary("m.json", JSON.stringify(metadata)))
      assert.strictEqual(imported.code, 0, imported.error)
      assert.match((yield* cli("models", "show", product_key)).out, /Temperature +Temperature +r +float .*°C/)
      for (const format of ["metadata", "tsl", "sdf"]) {
        const file = yield* temporary(`${format}.json`)
        yield* cli("models", "export", product_key, "--format", format, "--out", file)
        const again = yield* cli("models", "import", product_key, file)
        assert.strictEqual(again.code, 0, again.error)
        const exported = yield* json("models", "show", product_key)
        assert.strictEqual(exported.thing_model.properties[0].dataType.max, 80)
      }
      const refused = yield* cli("models", "import", product_key, yield* temporary("x.json", `{"properties":[{}]}`))
      assert.match(refused.error, /\(40002\)/)
    }))

  it.effect("a changed model is compared with the stored one, which is written as TypeScript", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      const property = { id: "Level", name: "Level", accessMode: "rw", dataType: { type: "int", min: 0, max: 100 } }
      yield* cli(
        "models",
        "import",
        product_key,
        yield* temporary("m.json", JSON.stringify({ properties: [property] }))
      )
      const wider = { properties: [property, { ...property, id: "Other" }] }
      const harmless = yield* cli("models", "diff", product_key, yield* temporary("w.json", JSON.stringify(wider)))
      assert.deepStrictEqual([harmless.code, harmless.out], [0, "+ properties.Other\nNothing breaks."])
      const narrower = { properties: [{ ...property, dataType: { type: "int", min: 0, max: 10 } }] }
      const broken = yield* cli("models", "diff", product_key, yield* temporary("n.json", JSON.stringify(narrower)))
      assert.strictEqual(broken.code, 1)
      assert.match(broken.out, /^devices +property +Level +/m)
      const types = yield* cli("types", product_key, "--name", "tank")
      assert.match(types.out, /export const tank = defineThingModel\(/)
      assert.include(types.out, "\"Level\"")
    }))

  it.effect("a firmware file is uploaded with its hashes, and devices are upgraded to it", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      yield* createDevice(product_key)
      const image = yield* temporary("image.bin", "image")
      const { used } = yield* json("projects", "usage")
      const refused = yield* cli("firmware", "upload", product_key, image, "1.1")
      assert.strictEqual(refused.code, 2)
      assert.include(refused.error, "Expected x.y.z")
      assert.deepStrictEqual((yield* json("projects", "usage")).used, used)
      const uploaded = yield* json("firmware", "upload", product_key, image, "1.1.0")
      assert.deepInclude(uploaded, { version: "1.1.0", size: 5, algorithms: "md5" })
      assert.match(uploaded.sha256, /^[0-9a-f]{64}$/)
      const upgrade = yield* json("firmware", "upgrade", String(uploaded.id))
      assert.strictEqual(upgrade.device_count, 1)
      assert.match((yield* cli("firmware", "upgrades", String(uploaded.id))).out, /in-progress|pending/)
      assert.match((yield* cli("firmware", "upgrade-status", String(upgrade.task_id))).out, /1\.1\.0|pending/)
    }))

  it.effect("an import says which lines it has refused, and a second one makes nothing twice", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      const rows = ["device_name,nickname,tags", ...Array.from({ length: 120 }, (_, i) => `lamp-${i},,`)]
      rows.push("lamp-a,\"Hall, left\",\"{\"\"room\"\":\"\"hall\"\"}\"", "x,,", "lamp-1,,")
      const file = yield* temporary("devices.csv", rows.join("\n"))
      const first = yield* cli("devices", "import", file, "--product", product_key)
      assert.strictEqual(first.code, 1)
      assert.match(first.out, /^121 created, 0 there before, 2 failed\./)
      assert.match(first.error, /^122 of 123\n123 of 123$/m)
      assert.match(first.out, /^123 +x +device_name: Expected 4 to 32/m)
      assert.match(first.out, /^124 +lamp-1 +device_name: the file has it before/m)
      const second = yield* cli("devices", "import", file, "--product", product_key)
      assert.match(second.out, /^0 created, 121 there before, 2 failed\./)
      const { device_info } = yield* json("devices", "get", `${product_key}/lamp-a`)
      assert.deepInclude(device_info, { nickname: "Hall, left", tags: { room: "hall" } })
    }))

  it.effect("an import ends when the server goes away, or does not take the key: no line is at fault", () =>
    Effect.gen(function*() {
      const rows = Array.from({ length: 100 }, (_, i) => `lamp-${i},Hall,`)
      const named = yield* temporary("named.csv", ["device_name,nickname,tags", ...rows].join("\n"))
      const plain = yield* temporary("plain.csv", "device_name\nlamp-0\n")
      const gone = yield* serving((request) => request.socket.destroy())
      const real = yield* serverUrl
      const unknown = ownerKey.replace(/.$/, (last) => last === "A" ? "B" : "A")
      for (const file of [named, plain]) {
        for (
          const [url, key, reason] of [
            [gone, ownerKey, /^http:\/\/127\.0\.0\.1:\d+ cannot be reached: .+$/],
            [real, unknown, /^.+ \(40100\)$/]
          ] as const
        ) {
          const environment = { DEVICE_CLOUD_URL: url, DEVICE_CLOUD_KEY: key }
          const { code, error, out } = yield* runWith(environment, ["devices", "import", file, "--product", "lamp"])
          assert.deepStrictEqual([code, out], [1, ""])
          assert.match(error, reason)
        }
      }
    }))

  it.effect("a file of devices loses no character: quotes within a cell are text, and cells too many are refused", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      const file = yield* temporary(
        "devices.csv",
        [
          "device_name,nickname,tags",
          "wall-1,12\" screen,{\"room\":\"hall\"}",
          "wall\"0002,,",
          "wall-3, \"Hall, left\",",
          "wall-4,Hall,,left,"
        ].join("\r")
      )
      const imported = yield* cli("devices", "import", file, "--product", product_key)
      assert.match(imported.out, /^2 created, 0 there before, 2 failed\./)
      assert.match(imported.out, /^3 +wall"0002 +device_name: Expected 4 to 32/m)
      assert.match(imported.out, /^5 +wall-4 +more cells than the line of names has/m)
      const { device_info } = yield* json("devices", "get", `${product_key}/wall-1`)
      assert.deepInclude(device_info, { nickname: "12\" screen", tags: { room: "hall" } })
      assert.strictEqual((yield* json("devices", "get", `${product_key}/wall-3`)).device_info.nickname, "Hall, left")
    }))

  it.effect("a cell whose quotes do not enclose it is refused, and takes no other line with it", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      const rows = ["device_name,nickname", "wall-5,\"Hall", "wall-6,\"Hall\" left", "wall-7,\"Hall, \"\"left\"\"\""]
      const file = yield* temporary("devices.csv", rows.join("\n"))
      const imported = yield* cli("devices", "import", file, "--product", product_key)
      assert.match(imported.out, /^1 created, 0 there before, 2 failed\./)
      assert.match(imported.out, /^2 +wall-5 +a cell that begins with a quote must end with one/m)
      assert.match(imported.out, /^3 +wall-6 +a cell that begins with a quote must end with one/m)
      const { device_info } = yield* json("devices", "get", `${product_key}/wall-7`)
      assert.strictEqual(device_info.nickname, "Hall, \"left\"")
    }))

  it.effect("a file of devices whose line of names says nothing certain makes no device", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      for (
        const [text, reason] of [
          ["", "expected a line of names with device_name"],
          ["\n", "expected a line of names with device_name"],
          ["name\nlamp-1\n", "expected a line of names with device_name"],
          ["device_name,nickname,device_name\nlamp-1,Hall,lamp-2\n", "the line of names has device_name twice"],
          ["device_name,tags,tags\n", "the line of names has tags twice"]
        ] as const
      ) {
        const file = yield* temporary("devices.csv", text)
        const refused = yield* cli("devices", "import", file, "--product", product_key)
        assert.strictEqual(refused.code, 1, text)
        assert.match(refused.out, new RegExp(`^0 created, 0 there before, 1 failed\\.[^]*^1 +${reason}$`, "m"))
      }
      // A project without devices is exported so, and names that mean nothing may come twice.
      for (const text of ["device_name,nickname\n", "device_name,,\nlamp-1,,\n"]) {
        const file = yield* temporary("devices.csv", text)
        assert.strictEqual((yield* cli("devices", "import", file, "--product", product_key)).code, 0, text)
      }
    }))

  it.effect("a table may have as many rows as a large file has lines", () =>
    Effect.gen(function*() {
      let lines = 0
      const console = { ...globalThis.console, log: () => void lines++ }
      yield* Output.table(Array.from({ length: 150_000 }, () => ({ name: "" }))).pipe(
        Effect.provideService(Console.Console, console),
        Effect.provideService(ShowSecret, false),
        Effect.provide(NodeServices.layer)
      )
      assert.strictEqual(lines, 150_001)
    }))

  it.effect("an export holds no secrets unless they are asked for, and can be imported", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      const { device_secret } = yield* createDevice(product_key, { device_name: "lamp", nickname: "a \"b\"" })
      const plain = yield* cli("devices", "export", "--product", product_key)
      assert.strictEqual(plain.out, `product_key,device_name,nickname,tags\n${product_key},lamp,"a ""b""",`)
      for (const format of ["csv", "ndjson"]) {
        const file = yield* temporary(`devices.${format}`)
        yield* cli("devices", "export", "--product", product_key, "--format", format, "--show-secret", "--out", file)
        assert.include(yield* Effect.promise(() => readFile(file, "utf8")), device_secret!)
        assert.match((yield* cli("devices", "import", file)).out, /^0 created, 1 there before, 0 failed\./)
      }
    }))

  it.effect("an export with secrets is refused to a key that reads none, and leaves the file as it is", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      yield* createDevice(product_key, { device_name: "lamp" })
      const { key } = yield* json("keys", "create", "--name", "reader", "--role", "viewer", "--show-secret")
      const reader = { DEVICE_CLOUD_URL: yield* serverUrl, DEVICE_CLOUD_KEY: key }
      const file = yield* temporary("triples.csv", "kept")
      const { code, error } = yield* runWith(reader, ["devices", "export", "--show-secret", "--out", file])
      assert.strictEqual(code, 1)
      assert.match(error, /role viewer.*needs operator/)
      assert.strictEqual(yield* Effect.promise(() => readFile(file, "utf8")), "kept")
      const plain = yield* runWith(reader, ["devices", "export", "--product", product_key])
      assert.include(plain.out, `${product_key},lamp,`)
    }))

  it.effect("an export, and --all, have the devices that move to pages before when others are deleted meanwhile", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      const names = Array.from({ length: 102 }, (_, i) => `lamp${i}`)
      yield* Effect.forEach(names, (device_name) => createDevice(product_key, { device_name }), { concurrency: 8 })
      const api = yield* serverUrl
      let deleted: string | undefined
      // Between the first page and the second, a device of the first is deleted.
      const url = yield* serving(async (request, response) => {
        const ask = async (method: string, path: string) =>
          (await fetch(api + path, { method, headers: { authorization: request.headers.authorization! } })).text()
        if (deleted === undefined && request.url!.includes("page=2")) {
          const latest = JSON.parse(await ask("GET", `/openapi/v1/things?product_key=${product_key}&page_size=1`))
          const [{ device_id, device_name }] = latest.data.results
          deleted = device_name
          await ask("DELETE", `/openapi/v1/things/${device_id}`)
        }
        response.setHeader("content-type", "application/json")
        response.end(await ask("GET", request.url!))
      })
      const environment = { DEVICE_CLOUD_URL: url, DEVICE_CLOUD_KEY: ownerKey }
      const exported = yield* runWith(environment, ["devices", "export", "--product", product_key])
      assert.sameMembers(exported.out.split("\n").slice(1).map((line) => line.split(",")[1]), names)

      const left = names.filter((name) => name !== deleted)
      deleted = undefined
      const listed = yield* runWith(environment, ["devices", "list", "--product-key", product_key, "--all", "--json"])
      assert.sameMembers(
        JSON.parse(listed.out).results.map((device: { readonly device_name: string }) => device.device_name),
        left.filter((name) => name !== deleted)
      )
    }).pipe(Effect.scoped))

  it.effect("a file with secrets is its user's alone, also one that others could read before", () =>
    Effect.gen(function*() {
      const file = yield* temporary("triples.csv", "old")
      yield* Effect.promise(() => chmod(file, 0o644))
      assert.strictEqual((yield* cli("devices", "export", "--show-secret", "--out", file)).code, 0)
      const { mode } = yield* Effect.promise(() => stat(file))
      assert.strictEqual(mode & 0o777, 0o600)
    }))

  it.effect("init keeps a server and its key for its user alone, and overwrites nothing", () =>
    Effect.gen(function*() {
      const home = join(yield* temporary("x"), "..")
      const url = yield* serverUrl
      const { key } = yield* json("keys", "create", "--name", "laptop", "--role", "viewer", "--show-secret")
      const init = (...args: ReadonlyArray<string>) => runWith({ HOME: home }, ["init", "--url", url, ...args])
      assert.strictEqual((yield* init("--key", key)).code, 0)
      const { mode } = yield* Effect.promise(() => stat(join(home, ".config/device-cloud/config.json")))
      assert.strictEqual(mode & 0o777, 0o600)
      assert.strictEqual((yield* runWith({ HOME: home }, ["products", "list"])).code, 0)
      const wrong = yield* init("--key", "dck_wrong")
      assert.match(wrong.error, /refuses the key/)
      const other = (yield* json("keys", "create", "--name", "2", "--role", "viewer", "--show-secret")).key
      assert.match((yield* init("--key", other)).error, /pass --force/)
      assert.strictEqual((yield* init("--key", other, "--force")).code, 0)
      // The key of a profile goes to the server of the profile only.
      const elsewhere = yield* runWith({ HOME: home }, ["products", "list", "--url", "http://localhost:1"])
      assert.match(elsewhere.error, /There is no access key for http:\/\/localhost:1/)
      for (const name of ["site", "constructor"]) {
        const unknown = yield* runWith({ HOME: home }, ["products", "list", "--profile", name])
        assert.include(unknown.error, `There is no profile ${name}. Profiles: default`)
      }
      assert.strictEqual((yield* init("--key", key, "--profile", "constructor")).code, 0)
      assert.strictEqual((yield* runWith({ HOME: home }, ["products", "list", "--profile", "constructor"])).code, 0)
    }))

  it.effect("a damaged configuration file is named by the commands that need it, and by no others", () =>
    Effect.gen(function*() {
      const file = yield* temporary("config.json", "{")
      yield* Effect.promise(async () => {
        await mkdir(join(file, "../device-cloud"))
        await rename(file, join(file, "../device-cloud/config.json"))
      })
      const list = (environment: Readonly<Record<string, string>>, ...args: ReadonlyArray<string>) =>
        runWith({ XDG_CONFIG_HOME: join(file, ".."), ...environment }, ["products", "list", ...args])
      const url = yield* serverUrl
      assert.strictEqual((yield* list({}, "--url", url, "--key", ownerKey)).code, 0)
      assert.strictEqual((yield* list({ DEVICE_CLOUD_URL: url, DEVICE_CLOUD_KEY: ownerKey })).code, 0)
      for (
        const args of [["--url", url], ["--key", ownerKey], ["--url", url, "--key", ownerKey, "--profile", "site"]]
      ) {
        const { code, error } = yield* list({}, ...args)
        assert.strictEqual(code, 1)
        assert.match(error, /config\.json is not as `device-cloud init` writes it/)
      }
    }))

  it.effect("a user without a home needs no configuration file, but has none to keep a server in", () =>
    Effect.gen(function*() {
      const environment = { HOME: "", DEVICE_CLOUD_URL: yield* serverUrl, DEVICE_CLOUD_KEY: ownerKey }
      const listed = yield* runWith(environment, ["products", "list"])
      assert.strictEqual(listed.code, 0, listed.error)
      const kept = yield* runWith(environment, ["init", "--url", yield* serverUrl, "--key", ownerKey])
      assert.strictEqual(kept.code, 1)
      assert.match(kept.error, /^Neither HOME nor XDG_CONFIG_HOME says/)
    }))

  it.effect("a server that is not there is a failure that says so", () =>
    Effect.gen(function*() {
      const environment = { DEVICE_CLOUD_URL: "http://127.0.0.1:1", DEVICE_CLOUD_KEY: "dck_x" }
      const { code, error } = yield* runWith(environment, ["products", "list"])
      assert.strictEqual(code, 1)
      assert.match(error, /^http:\/\/127\.0\.0\.1:1 cannot be reached: /)
    }))

  it.effect("a server that is not Device Cloud is a failure that says so, and no profile", () =>
    Effect.gen(function*() {
      const url = yield* serving((request, response) => {
        const body = { null: "null", list: "[]", object: "{}" }[request.url!.split("/")[1]!] ?? "<html>"
        response.writeHead(200, { "content-type": body === "<html>" ? "text/html" : "application/json" }).end(body)
      })
      const other = /answers with status 200, but not as Device Cloud does/
      const home = join(yield* temporary("x"), "..")
      for (const path of ["", "/null", "/list"]) {
        const init = yield* runWith({ HOME: home }, ["init", "--url", url + path, "--key", "dck_x"])
        assert.strictEqual(init.code, 1)
        assert.match(init.error, other)
      }
      for (const path of ["", "/null", "/list"]) {
        for (const args of [["list"], ["list", "--all"], ["delete", "a1B2c3D4e5F"]]) {
          const listed = yield* runWith({}, ["products", ...args, "--url", url + path, "--key", "dck_x"])
          assert.strictEqual(listed.code, 1)
          assert.match(listed.error, other)
        }
      }
      for (const path of ["", "/null", "/list", "/object"]) {
        const { code, out } = yield* runWith({}, ["doctor", "--url", url + path, "--key", "dck_x", "--json"])
        assert.strictEqual(code, 1)
        const findings = JSON.parse(out) as ReadonlyArray<{ readonly check: string; readonly detail: string }>
        for (const check of ["ready", "access key", "versions"]) {
          assert.match(findings.find((finding) => finding.check === check)!.detail, other)
        }
      }
      assert.match((yield* runWith({ HOME: home }, ["products", "list"])).error, /There is no access key/)
    }).pipe(Effect.scoped))

  it.effect("a key that no request can carry, and an address with more than a place, are usage failures without secrets", () =>
    Effect.gen(function*() {
      const url = yield* serverUrl
      for (const command of [["products", "list"], ["doctor"], ["watch"], ["init"]]) {
        const { code, error, out } = yield* runWith({ DEVICE_CLOUD_URL: url }, [
          ...command,
          "--key",
          "dck_private\nkey"
        ])
        assert.strictEqual(code, 2)
        assert.match(error, /The access key from .* has characters that no access key has/)
        assert.notInclude(error + out, "private")
      }
      for (const wrong of ["http://ada:private@127.0.0.1", `${url}?private`, `${url}#private`]) {
        const { code, error } = yield* runWith({ DEVICE_CLOUD_URL: wrong, DEVICE_CLOUD_KEY: "dck_x" }, [
          "products",
          "list"
        ])
        assert.strictEqual(code, 2)
        assert.strictEqual(error, "The address of the server has no user, no password, no ? and no #")
      }
    }))

  it.effect("each command waits when the server refuses a request because there are too many", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      const api = yield* serverUrl
      const admitted = new Set<string>()
      // Refuses each request the first time.
      const url = yield* serving(async (request, response) => {
        const what = `${request.method} ${request.url}`
        const body = await buffer(request)
        if (!admitted.has(what)) {
          admitted.add(what)
          response.writeHead(429, { "content-type": "application/json" })
            .end(`{"code":42900,"message":"Too many requests","data":{"retry_after":0}}`)
          return
        }
        const forwarded = await fetch(api + request.url, {
          method: request.method!,
          headers: {
            authorization: request.headers.authorization!,
            "content-type": request.headers["content-type"] ?? "application/json"
          },
          ...request.method === "GET" ? {} : { body }
        })
        response.writeHead(forwarded.status, { "content-type": forwarded.headers.get("content-type")! })
          .end(Buffer.from(await forwarded.arrayBuffer()))
      })
      const document = yield* temporary("model.json", `{"properties":[],"events":[],"services":[]}`)
      const environment = { DEVICE_CLOUD_URL: url, DEVICE_CLOUD_KEY: ownerKey }
      for (
        const args of [
          ["products", "list"],
          ["models", "import", product_key, document],
          ["models", "show", product_key],
          ["firmware", "upload", product_key, document, "1.0.0"]
        ]
      ) {
        const { code, error } = yield* runWith(environment, args)
        assert.strictEqual(code, 0, error)
      }
      const watched = yield* runWith({ ...environment, DEVICE_CLOUD_KEY: "dck_x" }, ["watch"])
      assert.match(watched.error, /\(40100\)|\(40101\)/)
    }).pipe(Effect.scoped))

  it.effect("watch goes on where its stream began when the connection breaks before the first event", () =>
    Effect.gen(function*() {
      const places: Array<string | undefined> = []
      const streams = ["retry: 1000\nid: first\n\n", "id: second\nevent: status\ndata: {\"status\":\"online\"}\n\n"]
      const url = yield* serving((request, response) => {
        places.push(request.headers["last-event-id"] as string | undefined)
        const stream = streams[places.length - 1]
        response.writeHead(stream === undefined ? 401 : 200, {
          "content-type": stream === undefined ? "application/json" : "text/event-stream"
        }).end(stream ?? `{"code":40100,"message":"The access key is gone"}`)
      })
      const { code, error, out } = yield* runWith({}, ["watch", "--url", url, "--key", "dck_x", "--json"])
      assert.strictEqual(code, 1)
      assert.include(error, "The access key is gone (40100)")
      assert.deepStrictEqual(places, [undefined, "first", "second"])
      assert.deepStrictEqual(JSON.parse(out), { id: "second", type: "status", data: { status: "online" } })
    }).pipe(Effect.scoped))

  it.effect("watch fails when there is no such product or device, and leaves all else to the stream", () =>
    Effect.gen(function*() {
      for (
        const [flag, reason] of [["--product", /^There is no product nope .*\(40401\)$/], [
          "--device",
          /^There is no device nope .*\(40402\)$/
        ]] as const
      ) {
        const { code, error } = yield* cli("watch", flag, "nope")
        assert.strictEqual(code, 1)
        assert.match(error, reason)
      }
      const url = yield* serving((request, response) => {
        const [code, message] = request.url!.startsWith("/openapi/v1/events")
          ? [40300, "no events"]
          : [40300, "no products"]
        response.writeHead(403, { "content-type": "application/json" }).end(JSON.stringify({ code, message }))
      })
      const { error } = yield* runWith({}, ["watch", "--product", "nope", "--url", url, "--key", "dck_x"])
      assert.strictEqual(error, "no events (40300)")
    }).pipe(Effect.scoped, Effect.timeout("20 seconds")))

  it.effect("doctor finds what is well, and what is not", () =>
    Effect.gen(function*() {
      const { code, out } = yield* cli("doctor", "--mqtt", "mqtt://127.0.0.1:1", "--json")
      assert.strictEqual(code, 1)
      const findings = JSON.parse(out) as ReadonlyArray<{ readonly check: string; readonly status: string }>
      const statusOf = (name: string) => findings.find(({ check }) => check === name)?.status
      for (const check of ["server", "ready", "clock", "access key", "versions"]) {
        assert.strictEqual(statusOf(check), "ok")
      }
      // The API of this test has no broker beside it.
      assert.strictEqual(statusOf("websocket"), "warning")
      assert.strictEqual(statusOf("mqtt"), "failed")
    }))

  it.effect("completion has all commands", () =>
    Effect.gen(function*() {
      const { code, out } = yield* cli("completion", "bash")
      assert.strictEqual(code, 0)
      assert.include(out, "rotate-secret")
      assert.strictEqual((yield* cli("completion", "csh")).code, 2)
    }))
})
