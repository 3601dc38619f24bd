/**
 * Writes the form `sdf` of a thing model: Semantic Definition Format, RFC 9880
 * (docs/protocol/thing-models.md).
 */
import type { ProductKey } from "../../product/Product.ts"
import type { DataType, Field } from "../DataType.ts"
import {
  type EventElement,
  isEmpty,
  type PropertyElement,
  type ServiceElement,
  type ThingModel
} from "../ThingModel.ts"
import type { Members } from "./Document.ts"
import { celsius, readComment, writeComment } from "./SdfVocabulary.ts"

/** Writes a version of the model of a product as the only object of a document. */
export const write = (model: ThingModel, productKey: ProductKey, version: number) => ({
  info: { title: productKey, version: `${version}.0`, copyright: "n/a", license: "n/a" },
  namespace: { thing: "https://device-cloud.example/thing" },
  defaultNamespace: "thing",
  ...isEmpty(model) ? {} : { sdfObject: { [productKey]: writeObject(model, productKey) } }
})

const writeObject = (model: ThingModel, productKey: ProductKey) => {
  const { events, properties, services } = model
  const required = [
    ...requiredPointers("sdfProperty", properties, productKey),
    ...requiredPointers("sdfEvent", events, productKey),
    ...requiredPointers("sdfAction", services, productKey)
  ]
  return {
    ...group("sdfProperty", properties, writeProperty),
    ...group("sdfAction", services, writeService),
    ...group("sdfEvent", events, writeEvent),
    ...required.length === 0 ? {} : { sdfRequired: required }
  }
}

const group = <A extends { readonly id: string }>(
  name: string,
  elements: ReadonlyArray<A>,
  write: (element: A) => Members
) =>
  elements.length === 0
    ? {}
    : { [name]: Object.fromEntries(elements.map((element) => [element.id, write(element)])) }

const requiredPointers = (
  list: string,
  elements: ReadonlyArray<{ readonly id: string; readonly required: boolean }>,
  productKey: ProductKey
) => elements.filter(({ required }) => required).map(({ id }) => `#/sdfObject/${productKey}/${list}/${id}`)

const writeCommon = ({ desc, name }: { readonly desc: string; readonly name: string }) => ({
  label: name,
  ...desc === "" ? {} : { description: desc }
})

const standardOf = ({ standard }: { readonly standard: boolean }) => standard ? { standard } : {}

const writeProperty = (property: PropertyElement): Members => {
  const { $comment, ...type } = writeDataType(property.dataType)
  return {
    ...writeCommon(property),
    ...type,
    ...property.accessMode === "r" ? { writable: false } : {},
    ...property.accessMode === "w" ? { readable: false } : {},
    ...writeComment({ ...readComment($comment), ...standardOf(property) })
  }
}

const writeEvent = (event: EventElement): Members => ({
  ...writeCommon(event),
  ...writeFields("sdfOutputData", event.outputData),
  ...writeComment({ type: event.eventType, ...standardOf(event) })
})

const writeService = (service: ServiceElement): Members => ({
  ...writeCommon(service),
  ...writeFields("sdfInputData", service.inputData),
  ...writeFields("sdfOutputData", service.outputData),
  ...writeComment({ callType: service.callType, ...standardOf(service) })
})

const writeFields = (name: string, fields: ReadonlyArray<Field>): Members =>
  fields.length === 0 ? {} : { [name]: { type: "object", properties: writeMembers(fields) } }

const writeMembers = (fields: ReadonlyArray<Field>): Members =>
  Object.fromEntries(fields.map(({ dataType, id, name }) => [id, { label: name, ...writeDataType(dataType) }]))

const writeDataType = (dataType: DataType): Members => {
  switch (dataType.type) {
    case "int":
    case "float":
    case "double": {
      const { max, min, step, type, unit, unitName } = dataType
      const sdfUnit = unit === celsius.model ? celsius.sdf : unit
      return {
        type: type === "int" ? "integer" : "number",
        ...min === undefined ? {} : { minimum: min },
        ...max === undefined ? {} : { maximum: max },
        // `multipleOf` must be positive.
        ...step === undefined || step === 0 ? {} : { multipleOf: step },
        ...sdfUnit === undefined ? {} : { unit: sdfUnit },
        ...writeComment({
          type: type === "float" ? type : undefined,
          step: step === 0 ? step : undefined,
          // Without this, `read` would take the unit for degrees Celsius.
          unit: unit === celsius.sdf ? unit : undefined,
          unitName
        })
      }
    }
    case "bool":
      return { type: "boolean", ...writeComment({ specs: dataType.specs }) }
    case "enum": {
      const labels = Object.values(dataType.specs)
      const distinct = new Set(labels).size === labels.length
      return {
        type: "integer",
        sdfChoice: Object.fromEntries(
          Object.entries(dataType.specs).map(([value, label]) => [distinct ? label : value, { const: Number(value) }])
        ),
        ...writeComment({ specs: distinct ? undefined : dataType.specs })
      }
    }
    case "text":
      return { type: "string", maxLength: dataType.length }
    case "date":
      return { type: "number", sdfType: "unix-time" }
    case "struct":
      return { type: "object", properties: writeMembers(dataType.specs) }
    case "array":
      return { type: "array", maxItems: dataType.size, items: writeDataType(dataType.item) }
  }
}
