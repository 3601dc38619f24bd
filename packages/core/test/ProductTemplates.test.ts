import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { changesOf, compatible, emptyModel, ModelFormat, ProductDraft, productTemplates } from "@device-cloud/core"
import { Schema } from "effect"

const decodeDraft = Schema.decodeUnknownEffect(ProductDraft)

describe("templates of products", () => {
  for (const { description, name, product, templateId, thingModel } of productTemplates) {
    it.effect(`${templateId} is a product with a thing model in all formats`, () =>
      Effect.gen(function*() {
        assert.match(templateId, /^[a-z][a-z-]+$/)
        assert.match(description, /^[A-Z].*\.$/)
        yield* decodeDraft({ name, ...product })
        const { model } = yield* ModelFormat.decode("metadata", thingModel)
        assert.isNotEmpty(model.properties)
        for (const type of ["metadata", "tsl", "sdf"] as const) {
          const document = ModelFormat.encode(type, { model, productKey: "key" as never, version: 1 })
          const again = (yield* ModelFormat.decode(type, document)).model
          assert.deepStrictEqual(compatible(model, again), [], type)
        }
      }))
  }

  it("have different names", () => {
    const ids = productTemplates.map(({ templateId }) => templateId)
    assert.strictEqual(new Set(ids).size, ids.length)
  })
})

describe("changes of a thing model", () => {
  it.effect("are the elements that were added, changed and removed, in whatever order they stand", () =>
    Effect.gen(function*() {
      const [thermostat, lamp] = yield* Effect.forEach(
        productTemplates.slice(0, 2),
        ({ thingModel }) => Effect.map(ModelFormat.decode("metadata", thingModel), ({ model }) => model)
      )
      const { properties } = thermostat!
      assert.deepStrictEqual(changesOf(thermostat!, { ...thermostat!, properties: properties.toReversed() }), [])
      assert.deepStrictEqual(changesOf(emptyModel, emptyModel), [])
      const ids = (change: string, from = thermostat!, to = lamp!) =>
        changesOf(from, to).flatMap((each) => each.change === change ? [`${each.type} ${each.id}`] : [])
      assert.deepStrictEqual(ids("removed"), [
        "property CurrentTemperature",
        "property TargetTemperature",
        "property Mode",
        "event SensorFault",
        "service Restart"
      ])
      assert.deepStrictEqual(ids("added"), ["property Brightness", "property ColorTemperature", "service Blink"])
      const renamed = { ...thermostat!, properties: properties.map((each) => ({ ...each, name: "Other" })) }
      assert.deepStrictEqual(
        ids("changed", thermostat!, renamed),
        properties.map(({ id }) => `property ${id}`)
      )
    }))
})
