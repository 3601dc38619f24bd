import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { maxBody, refuseTemplate, renderBody, type Variables } from "../src/scene/definition/BodyTemplate.ts"

const variables: Variables = {
  scene_id: "s",
  scene_name: "Too \"hot\"",
  execution_id: "e",
  trigger: "trigger/device/property",
  product_key: "p",
  device_name: "d\\1\n",
  device_id: "i",
  data: { temperature: 31.5, "odd name": [1] },
  timestamp: 5,
  time: "1970-01-01T00:00:05.000Z"
}

const rendered = (template: string) => JSON.parse(renderBody(template, variables)!) as unknown

describe("templates of bodies", () => {
  it("a value stands alone or becomes a part of a text", () => {
    assert.deepStrictEqual(
      rendered(
        `{"text":"{{scene_name}}: {{data.temperature}} of {{ device_name }}","value":{{data.temperature}},` +
          `"data":{{data}},"said":"{{data}}","odd":{{data.odd name}},"none":{{data.humidity}},"nothing":"{{data.x}}"}`
      ),
      {
        text: "Too \"hot\": 31.5 of d\\1\n",
        value: 31.5,
        data: variables.data,
        said: "{\"temperature\":31.5,\"odd name\":[1]}",
        odd: [1],
        none: null,
        nothing: ""
      }
    )
  })

  it.each([
    "{\"text\":\"plain\"}",
    "[{{timestamp}}]",
    "{{data}}",
    "{\"a\":{\"b\":{{data}}}}",
    "{\"a\":\"\\\\{{device_name}}\"}",
    "\"{{ time }}\""
  ])("takes %s", (template) => {
    assert.isUndefined(refuseTemplate(template))
    assert.doesNotThrow(() => rendered(template))
  })

  it.each([
    ["{\"a\":\"{{devicename}}\"}", "there is no devicename"],
    ["{\"a\":{{data.}}}", "there is no data."],
    ["{\"a\":{{}}}", "there is no"],
    ["{{{device_name}}:1}", "Expected JSON"],
    ["not JSON {{time}}", "Expected JSON"],
    ["{\"a\":1{{timestamp}}}", "Expected JSON"],
    // A value would end the text that it is a part of.
    ["{\"a\":\"b\\{{device_name}}n\"}", "Expected JSON"],
    ["{\"a\":\"\\u00{{device_name}}41\"}", "Expected JSON"]
  ])("refuses %s", (template, reason) => {
    assert.include(refuseTemplate(template), reason)
  })

  it.prop("is JSON of the same form whatever the values are", [Schema.Json], ([value]) => {
    const template = "{\"a\":\"x{{data}}y{{data.k}}\",\"b\":{{data.k}},\"c\":{{data}}}"
    const body = renderBody(template, { ...variables, data: { k: value } })
    if (body !== undefined) assert.deepStrictEqual(Object.keys(JSON.parse(body)), ["a", "b", "c"])
  })

  it("has a longest length", () => {
    const data = "x".repeat(maxBody / 2)
    assert.isDefined(renderBody("[{{data}}]", { ...variables, data }))
    assert.isUndefined(renderBody("[{{data}},{{data}},{{data}}]", { ...variables, data }))
  })
})
