/**
 * What the forms of the console take, and what is saved by them.
 */
import { assert } from "@effect/vitest"
import type { Locator, Page } from "playwright-core"
import { vi } from "vitest"
import { signIn } from "./ConsolePage.ts"
import { follow, inBrowser, visit } from "./Windows.ts"

/** Waits until a field has a value. */
const shows = (field: Locator, value: string) =>
  vi.waitFor(async () => assert.strictEqual(await field.inputValue(), value), { timeout: 15_000 })

/** Lets a project have more of something than one can choose from in a list. */
const many = (page: Page, url: RegExp) =>
  page.route(url, async (route) => {
    const response = await route.fetch()
    const body = await response.json()
    body.data.total = 101
    await route.fulfill({ response, json: body })
  })

inBrowser((inWindow) => {
  inWindow(
    "a scene takes the days of a window as they are typed, and a dry run names values that are not JSON",
    async ({ page, scene, site }) => {
      await signIn(page, site)
      await visit(page, site, scene)
      await page.getByLabel("Add a condition").selectOption("condition/time/window")
      await page.getByRole("button", { name: "Add: Conditions" }).click()
      await page.getByLabel("Days").focus()
      await page.keyboard.type("mon, tue,fri")
      assert.strictEqual(await page.getByLabel("Days").inputValue(), "mon, tue,fri")
      await page.getByRole("button", { name: "Save", exact: true }).click()
      await page.getByText("The scene is saved").waitFor()
      await page.reload()
      await page.getByLabel("Days").waitFor()
      assert.strictEqual(await page.getByLabel("Days").inputValue(), "mon, tue, fri")

      await visit(page, site, `${scene}/dry`)
      await page.getByLabel("Reported values as JSON").fill("{Temperature: 31}")
      await page.getByText("This is not a JSON object").waitFor()
      assert.strictEqual(await page.getByRole("button", { name: "Try it" }).getAttribute("aria-disabled"), "true")
    }
  )

  inWindow(
    "a tag is not lost: one without a name, or with that of another, is not saved",
    async ({ batched, page, site }) => {
      await signIn(page, site)
      await visit(page, site, batched)
      await page.getByRole("button", { name: "Edit tags" }).click()
      const dialog = page.getByRole("dialog")
      const save = dialog.getByRole("button", { name: "Save" })
      const fill = (label: string, text: string) => dialog.getByLabel(label, { exact: true }).fill(text)
      await fill("Value 1", "kitchen")
      await dialog.getByText("This value has no name").waitFor()
      assert.strictEqual(await save.getAttribute("aria-disabled"), "true")
      await fill("Name 1", "room")
      await dialog.getByRole("button", { name: "Add a tag" }).click()
      await fill("Name 2", "room")
      await dialog.getByText("Another tag has this name").waitFor()
      assert.strictEqual(await save.getAttribute("aria-disabled"), "true")
      await fill("Name 2", "at:home")
      await save.click()
      await dialog.waitFor({ state: "detached" })
      await page.getByRole("link", { name: "room: kitchen" }).waitFor()
      // The list can look for no name with a colon.
      await page.getByText("at:home:").waitFor()
      assert.strictEqual(await page.getByRole("link", { name: "at:home" }).count(), 0)
    }
  )

  inWindow(
    "inputs and parts that are not JSON are not sent, and nothing else in their place",
    async ({ call, hub, page, scene, site }) => {
      await signIn(page, site)
      await visit(page, site, `${hub}/control`)
      await page.getByLabel("Service id").fill("Reboot")
      await page.getByLabel("Inputs").fill(`{"delay": 5`)
      await page.getByRole("button", { name: "Call Reboot" }).click()
      await page.locator("textarea:focus").waitFor()
      await page.getByLabel("Inputs").fill(`{"delay": 5}`)
      await page.getByRole("button", { name: "Call Reboot" }).click()
      const commands = () => call("GET", `/things/${hub.split("/").at(-1)}/messages`)
      await vi.waitFor(async () => assert.isNotEmpty((await commands())["results"]), { timeout: 15_000 })
      const { results } = await commands()
      assert.deepStrictEqual(results.map(({ params }: { readonly params: unknown }) => params), [{ delay: 5 }])

      // Actions of the application.
      const light = (level: number) => ({ URI: "action/own/light", params: { level } })
      const sent: Array<unknown> = []
      let actions: ReadonlyArray<unknown> = [light(1), light(2)]
      await page.route(/\/rule-engine\/scenes\/\w+$/, async (route) => {
        const isSaved = route.request().method() === "PUT"
        if (isSaved) {
          actions = route.request().postDataJSON().actions
          sent.push(actions)
        }
        const { origin, pathname } = new URL(route.request().url())
        const response = await route.fetch({ url: origin + pathname, method: "GET", postData: "" })
        const { data } = await response.json()
        await route.fulfill({
          response,
          json: { code: 0, message: "success", data: { ...data, actions, warnings: [] } }
        })
      })
      await visit(page, site, scene)
      const save = page.getByRole("button", { name: "Save", exact: true })
      const first = page.getByRole("group", { name: "1. action/own/light" }).locator("textarea")
      await page.getByRole("button", { name: "Move up: 2. action/own/light" }).click()
      await vi.waitFor(async () => assert.deepStrictEqual(JSON.parse(await first.inputValue()), { level: 2 }), {
        timeout: 15_000
      })
      for (
        const [broken, issue] of [
          [`{"level": 3`, "This is not a JSON object"],
          ["[3]", "This is not a JSON object"],
          [`{"level": 1e999}`, "A number in it is too large to be sent as it is"],
          [`{"level": 9007199254740993}`, "A number in it is too large to be sent as it is"]
        ] as const
      ) {
        await first.fill(broken)
        await page.getByText(issue).waitFor()
        await save.click()
        await page.locator("textarea:focus").waitFor()
      }
      await first.fill(`{"level": 9007199254740992, "scale": 1e300, "label": ""}`)
      await save.click()
      await page.getByText("The scene is saved").waitFor()
      const written = { URI: "action/own/light", params: { level: 2 ** 53, scale: 1e300, label: "" } }
      assert.deepStrictEqual(sent, [[written, light(1)]])
    }
  )

  inWindow("the form of a model stands beside labels that are half written", async ({ page, product, site }) => {
    await signIn(page, site)
    await visit(page, site, `${product}/model`)
    const source = {
      properties: [{ id: "Mode", name: "Mode", accessMode: "rw", dataType: { type: "enum", specs: null } }]
    }
    await page.getByLabel("The model as JSON").fill(JSON.stringify(source))
    await page.getByRole("button", { name: "Edit Mode" }).click()
    await page.getByRole("dialog").getByLabel("Name (required)").fill("Way")
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click()
    await page.getByText("Way", { exact: true }).waitFor()
  })

  inWindow("the bounds of a number are what one types, with zeros and signs", async ({ page, product, site }) => {
    await signIn(page, site)
    await visit(page, site, `${product}/model`)
    await page.getByRole("button", { name: "Add a property" }).click()
    const dialog = page.getByRole("dialog")
    await dialog.getByLabel("Id (required)").fill("Valve")
    await dialog.getByLabel("Name (required)").fill("Valve")
    for (const [bound, typed] of [["Least", "-0.5"], ["Most", "10.05"], ["Step", "0.05"]] as const) {
      await dialog.getByLabel(bound).focus()
      await page.keyboard.type(typed)
      assert.strictEqual(await dialog.getByLabel(bound).inputValue(), typed)
    }
    await dialog.getByRole("button", { name: "Save" }).click()
    await dialog.waitFor({ state: "detached" })
    const { properties } = JSON.parse(await page.getByLabel("The model as JSON").inputValue())
    assert.deepStrictEqual(properties.at(-1).dataType, { type: "float", min: -0.5, max: 10.05, step: 0.05 })
  })

  inWindow("what is not saved is lost by no link that somebody follows", async ({ page, product, scene, site }) => {
    await signIn(page, site)
    const dialog = page.getByRole("dialog", { name: "Leave without saving?" })
    await visit(page, site, `${product}/model`)
    const source = page.getByLabel("The model as JSON")
    await source.fill("{}")
    await page.getByRole("link", { name: "Versions" }).click()
    await dialog.getByRole("button", { name: "Cancel" }).click()
    assert.strictEqual(await source.inputValue(), "{}")
    await page.getByRole("link", { name: "Versions" }).click()
    await dialog.getByRole("button", { name: "Leave" }).click()
    await page.getByRole("table", { name: "Versions of the thing model" }).waitFor()

    await visit(page, site, scene)
    const description = page.getByLabel("Description")
    await description.fill("For the hall")
    await page.getByRole("link", { name: "Executions" }).click()
    await dialog.getByRole("button", { name: "Cancel" }).click()
    assert.strictEqual(await description.inputValue(), "For the hall")
    await page.getByRole("button", { name: "Save", exact: true }).click()
    await page.getByText("The scene is saved").waitFor()
    await page.getByRole("link", { name: "Executions" }).click()
    await page.waitForURL(/executions$/)
    assert.strictEqual(await dialog.count(), 0)
  })

  inWindow(
    "a configuration and a codec that are not saved are lost by no link",
    async ({ codec, page, product, site }) => {
      await signIn(page, site)
      const dialog = page.getByRole("dialog", { name: "Leave without saving?" })
      for (const [path, label] of [[`${product}/configuration`, "Content"], [codec, "Description as JSON"]] as const) {
        await visit(page, site, path)
        const field = page.getByLabel(label, { exact: true })
        const before = await field.inputValue()
        await field.fill("{ }")
        await page.getByRole("link", { name: "Events" }).click()
        await dialog.getByRole("button", { name: "Cancel" }).click()
        assert.strictEqual(await field.inputValue(), "{ }")
        await field.fill(before)
        await page.getByRole("link", { name: "Events" }).click()
        await page.waitForURL(/events$/)
      }
    }
  )

  inWindow("what is not saved is lost by no way back", async ({ page, product, scene, site }) => {
    await signIn(page, site)
    await visit(page, site, product)
    const dialog = page.getByRole("dialog", { name: "Leave without saving?" })
    for (
      const [path, label, text] of [[scene, "Description", "For the hall"], [
        `${product}/model`,
        "The model as JSON",
        "{}"
      ]]
    ) {
      await visit(page, site, "/console/products")
      await page.evaluate(follow(path!))
      const field = page.getByLabel(label!)
      await field.fill(text!)
      await page.getByRole("link", { name: "Skip to the content" }).press("Enter")
      await page.waitForURL(/#main$/)
      assert.strictEqual(await dialog.count(), 0)
      await page.evaluate("history.go(-2)")
      await dialog.getByRole("button", { name: "Cancel" }).click()
      assert.deepStrictEqual([await field.inputValue(), new URL(page.url()).pathname], [text, path])
      await page.evaluate("history.back()")
      await dialog.getByRole("button", { name: "Leave" }).click()
      await page.getByRole("heading", { name: "Products", level: 1 }).waitFor()
      assert.strictEqual(new URL(page.url()).pathname, "/console/products")
    }
  })

  inWindow(
    "an element of a model is not saved while one of its fields is half written",
    async ({ page, product, site }) => {
      await signIn(page, site)
      await visit(page, site, `${product}/model`)
      const dialog = page.getByRole("dialog")
      const save = dialog.getByRole("button", { name: "Save" })
      const isOff = async () => await save.getAttribute("aria-disabled") === "true"
      await page.getByRole("button", { name: "Add a service" }).click()
      const [inputs, outputs] = [dialog.getByLabel("Inputs"), dialog.getByLabel("Outputs")]
      await inputs.fill(`[{ "id": "Delay"`)
      await outputs.fill(`[{ "id": "Done", "name": "Done", "dataType": { "type": "bool" } }]`)
      assert.isTrue(await isOff())
      await inputs.fill("[]")
      assert.isFalse(await isOff())
      await dialog.getByRole("button", { name: "Cancel" }).click()

      await page.getByRole("button", { name: "Add a property" }).click()
      await dialog.getByLabel("Type", { exact: true }).selectOption("enum")
      await dialog.getByLabel("Values").fill("0: off\n1 on")
      await dialog.getByText("One on each line: number, colon, label").nth(1).waitFor()
      assert.isTrue(await isOff())
      await dialog.getByLabel("Values").fill("0: off\n1: on\n")
      assert.isFalse(await isOff())
      // What is gone with its field holds up nothing.
      await dialog.getByLabel("Type", { exact: true }).selectOption("array")
      await dialog.getByLabel("Items", { exact: true }).selectOption("struct")
      await dialog.getByLabel("Members").fill("[{")
      assert.isTrue(await isOff())
      await dialog.getByLabel("Items", { exact: true }).selectOption("int")
      assert.isFalse(await isOff())
    }
  )

  inWindow(
    "a number that a device has reported is emptied and typed anew before it is set",
    async ({ device, page, post, site }) => {
      await post({ Target: 21 })
      await signIn(page, site)
      await visit(page, site, `${device}/control`)
      const target = page.getByLabel("Target", { exact: true })
      await shows(target, "21")
      await target.press("End")
      await page.keyboard.press("Backspace")
      await page.keyboard.press("Backspace")
      assert.strictEqual(await target.inputValue(), "")
      const set = page.getByRole("button", { name: "Set properties" })
      assert.strictEqual(await set.getAttribute("aria-disabled"), "true")
      await page.keyboard.type("18")
      assert.strictEqual(await target.inputValue(), "18")
      await page.getByRole("button", { name: "Set 1 property" }).waitFor()
      // Who leaves it as it is has what the device has reported again.
      await page.getByRole("checkbox", { name: "Target" }).uncheck()
      await shows(target, "21")
    }
  )

  inWindow(
    "what is wrong with an input of a service, or with a member of one, stands at its field",
    async ({ call, device, page, product, site }) => {
      const path = `/products/${product.split("/").at(-1)}/thing-model-element`
      const dataType = { type: "text", length: 4 }
      const specs = [{ id: "Font", name: "Font", dataType }]
      const element = {
        id: "Show",
        name: "Show",
        callType: "async",
        inputData: [
          { id: "Line", name: "Line", dataType },
          { id: "Look", name: "Look", dataType: { type: "struct", specs } },
          { id: "Tones", name: "Tone", dataType: { ...dataType, type: "array", elementType: "text", size: 2 } }
        ],
        outputData: []
      }
      await call("POST", path, { type: "service", element })
      await signIn(page, site)
      await visit(page, site, `${device}/control?service=Show`)
      const send = page.getByRole("button", { name: "Call Show" })
      const field = (name: string) => page.getByLabel(new RegExp(`^${name}`))
      const isWrong = (name: string) =>
        vi.waitFor(
          async () => assert.strictEqual(await field(name).getAttribute("aria-invalid"), "true"),
          { timeout: 15_000 }
        )
      await page.getByRole("button", { name: "Add to Tone" }).click()
      for (const name of ["Line", "Font", "Tone 1"]) {
        await field(name).fill("too long")
        await send.click()
        await isWrong(name)
        await field(name).fill("ok")
      }
      await call("DELETE", `${path}?type=service&id=Show`)
    }
  )

  inWindow(
    "a scene that is disabled while it is edited stays disabled when it is saved",
    async ({ page, scene, site }) => {
      await signIn(page, site)
      await visit(page, site, scene)
      await page.getByLabel("Description").fill("Cools the hall")
      await page.getByRole("button", { name: "Disable", exact: true }).click()
      const enable = page.getByRole("button", { name: "Enable", exact: true })
      await enable.waitFor()
      await page.getByRole("button", { name: "Save", exact: true }).click()
      await page.getByText("The scene is saved").waitFor()
      await page.reload()
      await enable.waitFor()
      assert.strictEqual(await page.getByLabel("Description").inputValue(), "Cools the hall")
    }
  )

  inWindow(
    "the latest time that a device or a scene can name breaks no form, east of Greenwich either",
    async ({ device, page, post, scene, site }) => {
      await post({ LastSeen: "8640000000000000" })
      await signIn(page, site)
      await visit(page, site, `${device}/control`)
      assert.strictEqual(await page.getByLabel("Last seen", { exact: true }).inputValue(), "")
      await page.route(/\/rule-engine\/scenes\/\w+$/, async (route) => {
        const response = await route.fetch()
        const body = await response.json()
        const time_range = { start_timestamp: 0, end_timestamp: 8_640_000_000_000 }
        body.data.conditions = [{ URI: "condition/time/range", params: { time_range } }]
        await route.fulfill({ response, json: body })
      })
      await visit(page, site, scene)
      assert.strictEqual(await page.getByLabel("Until").inputValue(), "")
    },
    { timezoneId: "Asia/Shanghai" }
  )

  inWindow("what is desired as JSON is what one types: what is left out goes", async ({ call, hub, page, site }) => {
    await signIn(page, site)
    await visit(page, site, `${hub}/shadow`)
    const dialog = page.getByRole("dialog")
    const desire = async (text: string) => {
      await page.getByRole("button", { name: "Edit what is desired" }).click()
      await dialog.locator("textarea").fill(text)
      await dialog.getByRole("button", { name: "Save" }).click()
      await dialog.waitFor({ state: "detached" })
    }
    await desire(`{"Speed": 1, "Mode": 2}`)
    await page.getByRole("row").filter({ hasText: "Mode" }).waitFor()
    await desire(`{"Speed": 1}`)
    await page.getByRole("row").filter({ hasText: "Mode" }).waitFor({ state: "detached" })
    assert.strictEqual(await page.getByRole("row").filter({ hasText: "Speed" }).count(), 1)

    await page.getByRole("button", { name: "Edit what is desired" }).click()
    const values = dialog.locator("textarea")
    await values.fill(`{"Speed": 3}`)
    await values.press("End")
    await values.press("ArrowLeft")
    await page.keyboard.type(`, "Mode": 2`)
    assert.strictEqual(await values.inputValue(), `{"Speed": 3, "Mode": 2}`)
    const save = dialog.getByRole("button", { name: "Save" })
    for (const none of ["[]", "[5]", "null", ""]) {
      await values.fill(none)
      assert.strictEqual(await values.inputValue(), none)
      assert.strictEqual(await save.getAttribute("aria-disabled"), "true", none)
    }
    await dialog.getByText("This is not a JSON object").waitFor()

    // What somebody else desires meanwhile stays, also when one types after hearing of it.
    await values.fill(`{"Speed": 3}`)
    await call("PUT", `/things/${hub.split("/").at(-1)}/shadow`, { state: { desired: { Speed: 2, Fan: 7 } } })
    await save.click()
    await dialog.getByRole("alert").waitFor()
    assert.deepStrictEqual(JSON.parse(await values.inputValue()), { Speed: 3, Fan: 7 })
    await values.fill((await values.inputValue()).replace("3", "4"))
    await save.click()
    await dialog.waitFor({ state: "detached" })
    await page.getByRole("row").filter({ hasText: "Fan" }).waitFor()
  })

  inWindow("a form does not send a time or a number that is half typed", async ({ page, product, site }) => {
    const sent: Array<string> = []
    page.on("request", (request) => {
      if (request.method() !== "GET") sent.push(`${request.method()} ${request.url()}`)
    })
    await signIn(page, site)
    await page.waitForLoadState("networkidle")
    sent.length = 0
    const dialog = page.getByRole("dialog")

    await visit(page, site, "/console/keys")
    await page.getByRole("button", { name: "New access key" }).click()
    await dialog.getByLabel("Name").fill("half")
    await dialog.getByLabel("Ends").focus()
    await page.keyboard.type("12")
    await dialog.getByRole("button", { name: "Create" }).click()
    assert.strictEqual(await dialog.count(), 1)
    // A year has four digits.
    await dialog.getByLabel("Ends").fill("")
    await dialog.getByLabel("Ends").focus()
    await page.keyboard.type("123120261130AM")
    assert.strictEqual(await dialog.getByLabel("Ends").inputValue(), "2026-12-31T11:30")

    await visit(page, site, product)
    const history = page.locator(".card").filter({ has: page.getByRole("heading", { name: "History" }) })
    await history.getByRole("button", { name: "Edit" }).click()
    await dialog.locator("input[type=number]").focus()
    await page.keyboard.type("3e")
    await dialog.getByRole("button", { name: "Save" }).click()
    assert.strictEqual(await dialog.count(), 1)
    assert.deepStrictEqual(sent, [])
  })

  inWindow("a key is copied from its dialog, also on a page over plain HTTP", async ({ context, page, site }) => {
    await context.grantPermissions(["clipboard-read", "clipboard-write"])
    await page.addInitScript(`Object.defineProperty(window, "isSecureContext", { value: false })`)
    await signIn(page, site)
    await visit(page, site, "/console/keys")
    await page.getByRole("button", { name: "New access key" }).click()
    const dialog = page.getByRole("dialog")
    await dialog.getByLabel("Name").fill("to be copied")
    await dialog.getByRole("button", { name: "Create" }).click()
    const copy = dialog.getByRole("button", { name: "Copy" })
    await copy.focus()
    await page.keyboard.press("Enter")
    await dialog.getByRole("status").getByText("Copied").waitFor()
    assert.strictEqual(await page.evaluate("navigator.clipboard.readText()"), await dialog.locator("pre").textContent())
    assert.isTrue(await copy.evaluate((button) => button.matches(":focus")))
  })

  inWindow("a number that is needed and was emptied is not sent as zero", async ({ call, page, scene, site }) => {
    const sent: Array<string> = []
    page.on("request", (request) => {
      if (request.method() !== "GET") sent.push(`${request.method()} ${request.url()}`)
    })
    const { results: [{ id }] } = await call("GET", "/ota/firmwares?page_size=1") as {
      readonly results: readonly [{ readonly id: number }]
    }
    await signIn(page, site)
    await visit(page, site, `/console/firmware/${id}`)
    sent.length = 0
    const dialog = page.getByRole("dialog")
    await page.getByRole("button", { name: "New campaign" }).click()
    for (
      const name of [
        "Devices a minute",
        "Minutes that a device may take",
        "Tries again after a failure",
        "not before so many devices have ended"
      ]
    ) {
      const before = await dialog.getByLabel(name).inputValue()
      await dialog.getByLabel(name).fill("")
      await dialog.getByRole("button", { name: "Start the campaign" }).click()
      assert.strictEqual(await dialog.getByLabel(name).evaluate((field) => field.matches(":focus")), true, name)
      await dialog.getByLabel(name).fill(before)
    }
    assert.deepStrictEqual(sent, [])
    // A zero is not taken for one.
    await dialog.getByLabel("not before so many devices have ended").fill("0")
    await dialog.getByRole("button", { name: "Start the campaign" }).click()
    await dialog.locator("[aria-invalid=true]").waitFor()
    assert.strictEqual(sent.length, 1)
    sent.length = 0
    await dialog.getByRole("button", { name: "Cancel" }).click()

    await visit(page, site, scene)
    await page.getByLabel("Add an action").selectOption("action/delay")
    await page.getByRole("button", { name: "Add: Actions" }).click()
    await page.getByLabel("Seconds").fill("")
    assert.strictEqual(await page.getByLabel("Seconds").inputValue(), "")
    await page.getByRole("button", { name: "Save", exact: true }).click()
    assert.deepStrictEqual(sent, [])
  })

  inWindow(
    "a product of very many is typed, and the back button skips the typing",
    async ({ page, product, site }) => {
      await many(page, /\/openapi\/v1\/products\?/)
      await signIn(page, site)
      await visit(page, site, "/console/products")
      await visit(page, site, "/console/devices")
      await page.getByLabel("Product", { exact: true }).focus()
      await page.keyboard.type(product.split("/").at(-1)!)
      await page.getByRole("link", { name: "thermostat01" }).waitFor()
      await page.goBack()
      await page.waitForURL(/products$/)
    }
  )

  inWindow("a group of very many is named by its id", async ({ page, site }) => {
    await many(page, /\/openapi\/v1\/device-groups\?/)
    await signIn(page, site)
    await visit(page, site, "/console/devices")
    await page.locator("tbody input[type=checkbox]").first().check()
    await page.getByRole("button", { name: "Add to a group" }).click()
    await page.getByRole("dialog").getByLabel("Id of the group").waitFor()
  })

  inWindow("a scene of very many is named by its id", async ({ page, scene, site }) => {
    await many(page, /\/rule-engine\/scenes\?/)
    await signIn(page, site)
    await visit(page, site, "/console/scenes/new")
    await page.getByLabel("Add an action").selectOption({ label: "Run another scene" })
    await page.getByRole("button", { name: "Add: Actions" }).click()
    const id = scene.split("/").at(-1)!
    await page.getByLabel("Id of the scene").fill(` ${id} `)
    assert.strictEqual(await page.getByLabel("Id of the scene").inputValue(), id)
  })

  inWindow("what is wrong with a line of a list, or with a tag, stands at its field", async ({ page, site }) => {
    await signIn(page, site)
    const dialog = page.getByRole("dialog")
    /** What is said at a field. */
    const issueOf = (label: string) => dialog.locator(".field", { has: page.getByLabel(label) }).locator(".issue")
    await visit(page, site, "/console/keys")
    await page.getByRole("button", { name: "New access key" }).click()
    await dialog.getByLabel("Name").fill("refused")
    await dialog.getByLabel("Only these operations").fill("devices:read\nnothing")
    await dialog.getByLabel("Only from these addresses").fill("here")
    await dialog.getByRole("button", { name: "Create" }).click()
    await issueOf("Only these operations").getByText(/^\[1\]: Expected a group of the API/).waitFor()
    await issueOf("Only from these addresses").getByText(/^\[0\]: Expected an IPv4/).waitFor()
    assert.strictEqual(await issueOf("Only these products").count(), 0)
    await dialog.locator("textarea:focus").and(dialog.getByLabel("Only these operations")).waitFor()
    await visit(page, site, "/console/subscriptions")
    await page.getByRole("button", { name: "New subscription" }).click()
    await dialog.getByLabel("Name").fill("refused")
    await dialog.getByLabel("Tags").fill(`site:${"x".repeat(129)}`)
    await dialog.getByRole("button", { name: "Create" }).click()
    await issueOf("Tags").getByText("site: Expected at most 128 characters").waitFor()
  })

  inWindow("an access key is limited to products, operations and addresses", async ({ page, product, site }) => {
    await signIn(page, site)
    await visit(page, site, "/console/keys")
    await page.getByRole("button", { name: "New access key" }).click()
    const dialog = page.getByRole("dialog")
    await dialog.getByLabel("Name").fill("limited")
    await dialog.getByLabel("Only these products").fill(product.split("/").at(-1)!)
    await dialog.getByLabel("Only these operations").fill("devices:read\nhistory:read")
    await dialog.getByLabel("Only from these addresses").fill("192.0.2.0/24")
    await dialog.getByRole("button", { name: "Create" }).click()
    await dialog.getByText("This is the only time").waitFor()
    await dialog.getByRole("button", { name: "Close" }).click()
    await page.getByRole("row", { name: /limited/ })
      .getByText("Only 1 product, 2 groups of operations, from 1 address").waitFor()
  })

  inWindow(
    "a configuration that somebody else stores meanwhile is shown before it is replaced",
    async ({ call, page, product, site }) => {
      const store = (content: string) =>
        call("PUT", `/products/${product.split("/").at(-1)}/configuration`, { format: "json", content })
      await store(`{"interval":60}`)
      await signIn(page, site)
      await visit(page, site, `${product}/configuration`)
      const content = page.getByLabel("Content")
      const save = page.getByRole("button", { name: "Save", exact: true })
      await content.fill(`{"interval":5}`)
      await store(`{"interval":3600}`)
      await save.click()
      await page.getByRole("alert").getByText(`{"interval":3600}`).waitFor()
      assert.strictEqual(await content.inputValue(), `{"interval":5}`)
      await save.click()
      await page.getByText(/^Saved as version/).waitFor()
      assert.strictEqual(await page.getByRole("alert").count(), 0)
    }
  )

  inWindow(
    "a codec that somebody else stores meanwhile is shown before it is replaced",
    async ({ call, codec, page, site }) => {
      const codecOf = (name: string) => ({
        reports: [{
          name,
          method: "thing.event.property.post",
          parts: [{ type: "uint", size: 2, to: "params.Angle" }]
        }]
      })
      const store = (name: string) => call("PUT", codec.replace("/console", ""), { codec: codecOf(name) })
      await store("first")
      await signIn(page, site)
      await visit(page, site, codec)
      const text = page.getByLabel("Description as JSON")
      const save = page.getByRole("button", { name: "Save", exact: true })
      await text.fill(JSON.stringify(codecOf("mine")))
      await store("theirs")
      await save.click()
      await page.getByRole("alert").getByText("theirs").waitFor()
      assert.strictEqual(await text.inputValue(), JSON.stringify(codecOf("mine")))
      await save.click()
      await page.getByText(/^Saved as version/).waitFor()
      assert.strictEqual(await page.getByRole("alert").count(), 0)
      // What is deleted is gone from the form, too.
      await page.getByRole("button", { name: "Delete the codec?" }).click()
      await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click()
      await shows(text, "{}")
    }
  )

  inWindow(
    "a model that somebody else stores meanwhile is compared before it is replaced",
    async ({ call, page, product, site }) => {
      const path = `/products/${product.split("/").at(-1)}/thing-model`
      const { thing_model } = await call("GET", `${path}?model_type=metadata`)
      const withName = (name: string) => {
        const [first, ...others] = thing_model.properties
        return JSON.stringify({ ...thing_model, properties: [{ ...first, name }, ...others] })
      }
      const store = (model_data: string) => call("POST", path, { model_type: "metadata", model_data })
      await signIn(page, site)
      await visit(page, site, `${product}/model`)
      const source = page.getByRole("textbox")
      const save = page.getByRole("button", { name: "Save the model" })
      await source.fill(withName("Mine"))
      await store(withName("Theirs"))
      await save.click()
      await page.getByRole("alert").getByText("Somebody has saved another version meanwhile").waitFor()
      assert.strictEqual(await source.inputValue(), withName("Mine"))
      const stored = async () => (await call("GET", `${path}?model_type=metadata`)).thing_model.properties[0].name
      assert.strictEqual(await stored(), "Theirs")
      await save.click()
      await page.getByText(/^Saved as version/).waitFor()
      assert.strictEqual(await stored(), "Mine")
      assert.strictEqual(await page.getByRole("alert").count(), 0)
      // Who takes what somebody else has stored begins anew.
      await source.fill(withName("Mine again"))
      await store(withName("Theirs"))
      await save.click()
      await page.getByRole("alert").waitFor()
      await page.getByRole("button", { name: "Discard" }).click()
      await source.fill(withName("Temperature"))
      assert.strictEqual(await page.getByRole("alert").count(), 0)
      await store(JSON.stringify(thing_model))
    }
  )

  inWindow(
    "a scene that somebody else stores meanwhile is shown before it is replaced",
    async ({ call, page, site }) => {
      const scene = {
        name: "Meanwhile",
        desc: "",
        status: "enable",
        triggers: [{ URI: "trigger/cron", params: { cron: "0 0 7 * * *" } }],
        actions: [{ URI: "action/delay", params: { seconds: 1 } }, {
          URI: "action/webhook",
          params: { URL: "https://a.invalid/", method: "POST" }
        }]
      }
      const { id } = await call("POST", "/rule-engine/scenes", scene)
      const stored = () => call("GET", `/rule-engine/scenes/${id}`)
      await signIn(page, site)
      await visit(page, site, `/console/scenes/${id}`)
      const description = page.getByLabel("Description")
      const save = page.getByRole("button", { name: "Save", exact: true })
      await description.fill("mine")
      await call("PUT", `/rule-engine/scenes/${id}`, { ...scene, desc: "theirs" })
      await save.click()
      await page.getByRole("alert").getByText("theirs").waitFor()
      assert.strictEqual((await stored())["desc"], "theirs")
      await save.click()
      await page.getByText("The scene is saved").waitFor()
      assert.strictEqual((await stored())["desc"], "mine")
      assert.strictEqual(await page.getByRole("alert").count(), 0)
      // Who changes nothing of it leaves it disabled.
      await description.fill("mine again")
      await call("PUT", `/rule-engine/scenes/${id}/status`, { status: "disable" })
      await Promise.all([
        page.waitForResponse((response) => response.request().method() === "PUT"),
        save.click()
      ])
      const { desc, status } = await stored()
      assert.deepStrictEqual([desc, status], ["mine again", "disable"])
      await call("DELETE", `/rule-engine/scenes/${id}`)
    }
  )

  inWindow("tags and a product that somebody else changes meanwhile stay as they want it", async (window) => {
    const { call, device, page, product, site } = window
    const things = device.replace("/console/devices", "/things")
    const tags = (tags: object) => call("PUT", `${things}/tags`, { tags })
    await tags({ room: "hall", floor: "1", old: "yes" })
    await signIn(page, site)
    const dialog = page.getByRole("dialog")
    const save = async () => {
      await dialog.getByRole("button", { name: "Save" }).click()
      await dialog.waitFor({ state: "detached" })
    }
    await visit(page, site, device)
    await page.getByRole("button", { name: "Edit tags" }).click()
    await dialog.getByLabel("Value 1").fill("kitchen")
    await dialog.getByLabel("Name 4").fill("new")
    await dialog.getByLabel("Value 4").fill("yes")
    await dialog.getByRole("button", { name: "Remove tag 3" }).click()
    await tags({ room: "hall", floor: "2", old: "yes", theirs: "kept" })
    await save()
    assert.deepStrictEqual((await call("GET", `${things}/detail`))["device_info"].tags, {
      room: "kitchen",
      floor: "2",
      theirs: "kept",
      new: "yes"
    })
    await tags({})

    const path = `/products/${product.split("/").at(-1)}`
    await visit(page, site, product)
    await page.getByRole("button", { name: "Edit", exact: true }).click()
    await dialog.getByLabel("Description").fill("mine")
    const others = { photo_url: "", dynamic_register: false }
    await call("PUT", path, { ...others, name: "Theirs", description: "" })
    await save()
    const { product_info: { description, name } } = await call("GET", path)
    assert.deepStrictEqual([name, description], ["Theirs", "mine"])
    await call("PUT", path, { ...others, name: "Thermostat", description: "" })
  })

  inWindow("a subscription that begins at a time is not created without one", async ({ page, site }) => {
    await signIn(page, site)
    await visit(page, site, "/console/subscriptions")
    await page.getByRole("button", { name: "New subscription" }).click()
    const dialog = page.getByRole("dialog")
    await dialog.getByLabel("Name").fill("reader")
    await dialog.locator("select").first().selectOption("time")
    const create = dialog.getByRole("button", { name: "Create" })
    assert.strictEqual(await create.getAttribute("aria-disabled"), "true")
    await dialog.locator("input[type=datetime-local]").fill("2026-01-01T00:00")
    await create.click()
    await page.getByText("Saved").waitFor()
  })

  inWindow(
    "a condition of a group is not lost: two lines of tags with one key are not saved",
    async ({ call, page, site }) => {
      await signIn(page, site)
      await visit(page, site, "/console/devices?view=groups")
      await page.getByRole("button", { name: "New group" }).click()
      const dialog = page.getByRole("dialog")
      const name = `Rooms ${Date.now()}`
      await dialog.getByLabel("Name (required)").fill(name)
      await dialog.getByRole("combobox").first().selectOption("dynamic")
      const create = dialog.getByRole("button", { name: "Create" })
      for (const wrong of ["room: kitchen\nroom: hall", "kitchen"]) {
        await dialog.getByLabel("Tags").fill(wrong)
        await dialog.getByText("One on each line: key, colon, value; no key twice").waitFor()
        assert.strictEqual(await create.getAttribute("aria-disabled"), "true")
      }
      await dialog.getByLabel("Tags").fill("room: kitchen\nurl: a:b")
      await create.click()
      await dialog.waitFor({ state: "detached" })
      const { results } = await call("GET", "/device-groups?page_size=100")
      assert.deepStrictEqual(results.find((group: { name: string }) => group.name === name)?.query, {
        tags: { room: "kitchen", url: "a:b" }
      })
    }
  )

  inWindow(
    "what is deleted by its name is typed as one sees it, whatever its white space",
    async ({ call, page, site }) => {
      const project = await call("POST", "/projects", { name: " Two  spaces\nand lines " })
      await signIn(page, site)
      await visit(page, site, "/console/projects")
      const row = page.getByRole("row").filter({ hasText: project["id"] })
      await row.getByRole("button", { name: /^Delete/ }).click()
      const dialog = page.getByRole("dialog")
      const remove = dialog.getByRole("button", { name: /^Delete/ })
      await dialog.getByRole("textbox").fill("Two spaces")
      assert.strictEqual(await remove.getAttribute("aria-disabled"), "true")
      await dialog.getByRole("textbox").fill("Two spaces and lines")
      await remove.click()
      await row.waitFor({ state: "detached" })
    }
  )

  inWindow("what is deleted by its name is typed without what cannot be seen of it", async ({ call, page, site }) => {
    const lamp = "Lamp\u202e10\u200b2\u2069"
    const project = await call("POST", "/projects", { name: lamp })
    await signIn(page, site)
    await visit(page, site, "/console/projects")
    const row = page.getByRole("row").filter({ hasText: project["id"] })
    await row.getByRole("button", { name: /^Delete/ }).click()
    const dialog = page.getByRole("dialog")
    // The name does not turn around the rest of the sentence.
    assert.strictEqual(await dialog.getByRole("heading").textContent(), "Delete the project “Lamp10\u200b2”?")
    const field = dialog.getByLabel("Type “Lamp10\u200b2” to confirm")
    const remove = dialog.getByRole("button", { name: /^Delete/ })
    await field.fill("Lamp201")
    assert.strictEqual(await remove.getAttribute("aria-disabled"), "true")
    await field.fill("Lamp102")
    await remove.click()
    await row.waitFor({ state: "detached" })
  })

  inWindow("a quota that somebody else changes meanwhile stays as they want it", async ({ call, page, site }) => {
    const { id } = await call("POST", "/projects", { name: "Quotas" })
    await signIn(page, site)
    await visit(page, site, `/console/projects?project=${id}`)
    await page.getByRole("button", { name: "Change quotas" }).click()
    const dialog = page.getByRole("dialog")
    await dialog.getByLabel("Scenes").fill("7")
    await call("PUT", `/projects/${id}/quotas`, { products: 3 })
    // As when somebody has signed in in another window: the page is read again.
    await page.evaluate("new BroadcastChannel('device-cloud-session').postMessage('changed')")
    await page.getByRole("table", { name: "Quotas" }).getByRole("row", { name: /^Products/ }).getByText("3", {
      exact: true
    })
      .waitFor()
    await dialog.getByRole("button", { name: "Save" }).click()
    await dialog.waitFor({ state: "detached" })
    const { limits } = await call("GET", `/projects/${id}/quotas`)
    assert.deepStrictEqual([limits.products, limits.scenes], [3, 7])
  })

  inWindow("a group and a subscription that somebody else changes meanwhile stay as they want them", async (window) => {
    const { call, page, site } = window
    const { group_id } = await call("POST", "/device-groups", {
      name: `Meanwhile ${Date.now()}`,
      query: { status: "online", tags: { room: "hall" } }
    })
    const { subscription_id } = await call("POST", "/subscriptions", {
      name: `Meanwhile ${Date.now()}`,
      filter: { types: ["property"], property_ids: ["Temperature"] },
      webhook: { url: "https://old.invalid/" }
    })
    await signIn(page, site)
    const dialog = page.getByRole("dialog")
    const save = async () => {
      await dialog.getByRole("button", { name: "Save" }).click()
      await dialog.waitFor({ state: "detached" })
    }
    await visit(page, site, `/console/devices?view=groups&group=${group_id}`)
    await page.getByRole("button", { name: "Edit" }).click()
    await dialog.getByLabel("Description").fill("mine")
    await dialog.getByLabel("Name begins with").fill("lamp")
    const name = `Theirs ${Date.now()}`
    const tags = { room: "kitchen" }
    await call("PUT", `/device-groups/${group_id}`, { name, query: { status: "offline", tags } })
    await save()
    const group = await call("GET", `/device-groups/${group_id}`)
    assert.deepStrictEqual([group["name"], group["desc"]], [name, "mine"])
    assert.deepStrictEqual(group["query"], { status: "offline", keyword: "lamp", tags })

    await visit(page, site, `/console/subscriptions/${subscription_id}`)
    await page.getByRole("button", { name: "Edit" }).click()
    await dialog.getByRole("textbox", { name: "Properties" }).fill("Target")
    const webhook = { url: "https://new.invalid/" }
    await call("PUT", `/subscriptions/${subscription_id}`, { name, webhook, filter: { types: ["event"] } })
    await save()
    const subscription = await call("GET", `/subscriptions/${subscription_id}`)
    assert.deepStrictEqual([subscription["name"], subscription["webhook"].url], [name, webhook.url])
    assert.deepStrictEqual(subscription["filter"], { types: ["event"], property_ids: ["Target"] })
  })

  inWindow(
    "a group whose name is changed keeps its query, also one that the form cannot show",
    async ({ call, page, site }) => {
      const query = { tags: { "site:floor": "2", note: " two\nlines " } }
      const { group_id } = await call("POST", "/device-groups", { name: `Second floor ${Date.now()}`, query })
      await signIn(page, site)
      await visit(page, site, `/console/devices?view=groups&group=${group_id}`)
      await page.getByRole("button", { name: "Edit" }).click()
      const dialog = page.getByRole("dialog")
      const renamed = `Upper floor ${Date.now()}`
      await dialog.getByLabel("Name (required)").fill(renamed)
      await dialog.getByRole("button", { name: "Save" }).click()
      await dialog.waitFor({ state: "detached" })
      const { name, query: kept } = await call("GET", `/device-groups/${group_id}`)
      assert.deepStrictEqual({ name, kept }, { name: renamed, kept: query })
    }
  )

  inWindow(
    "a subscription whose name is changed keeps its filter, also one that the form cannot show",
    async ({ call, page, site }) => {
      const filter = { types: ["property"], tags: { "site:floor": "2", note: " two\nlines " } }
      const { subscription_id } = await call("POST", "/subscriptions", { name: `Floor ${Date.now()}`, filter })
      await signIn(page, site)
      await visit(page, site, `/console/subscriptions/${subscription_id}`)
      await page.getByRole("button", { name: "Edit" }).click()
      const dialog = page.getByRole("dialog")
      const renamed = `Renamed floor ${Date.now()}`
      await dialog.getByLabel("Name (required)").fill(renamed)
      await dialog.getByRole("button", { name: "Save" }).click()
      await dialog.waitFor({ state: "detached" })
      const { name, filter: kept } = await call("GET", `/subscriptions/${subscription_id}`)
      assert.deepStrictEqual({ name, kept }, { name: renamed, kept: filter })
    }
  )

  inWindow("members of a group that are selected are those of the page", async ({ call, page, product, site }) => {
    const { group_id } = await call("POST", "/device-groups", { name: `Long ${Date.now()}` })
    const { results } = await call("GET", `/things?product_key=${product.split("/").at(-1)}&page_size=30`)
    const device_ids = results.map(({ device_id }: { readonly device_id: string }) => device_id)
    await call("POST", `/device-groups/${group_id}/things`, { device_ids })
    await signIn(page, site)
    await visit(page, site, `/console/devices?view=groups&group=${group_id}`)
    await page.locator("tbody input[type=checkbox]").first().check()
    await page.getByText("1 selected").waitFor()
    await page.getByRole("button", { name: "Next" }).click()
    await page.waitForURL(/page=2/)
    await page.locator("tbody tr").nth(5).waitFor({ state: "detached" })
    assert.strictEqual(await page.getByText("1 selected").count(), 0)
  })

  inWindow("the firmware of a device has modules of all pages", async ({ call, device, page, product, site }) => {
    await call("POST", `/products/${product.split("/").at(-1)}/ota/firmwares`, {
      name: "Radio",
      version: "1.0.0",
      module: "radio",
      oss_path: "https://example.com/radio.bin",
      algorithms: 1,
      hash: "93230c3bde425a9d7984a594ac55ea1e"
    })
    await signIn(page, site)
    // The only page there is comes as the second one.
    await page.route(/\/ota\/firmwares\?/, async (route) => {
      const url = new URL(route.request().url())
      const asked = url.searchParams.get("page") ?? "1"
      url.searchParams.set("page", "1")
      const response = await route.fetch({ url: url.href })
      const { data, ...body } = await response.json()
      await route.fulfill({
        response,
        json: { ...body, data: { ...data, pages: 2, results: asked === "2" ? data.results : [] } }
      })
    })
    await visit(page, site, `${device}/firmware`)
    await page.getByRole("heading", { name: /radio/ }).waitFor()
  })

  inWindow("a trace that runs can be stopped in a browser whose clock is fast", async ({ batched, page, site }) => {
    await page.clock.install({ time: Date.now() + 3_600_000 })
    await signIn(page, site)
    await visit(page, site, `${batched}/trace`)
    await page.getByRole("button", { name: "Start" }).click()
    await page.getByText("running").waitFor()
    await page.getByRole("button", { name: "Stop" }).click()
    await page.getByText("off", { exact: true }).waitFor()
  })
})
