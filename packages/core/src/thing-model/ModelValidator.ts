/**
 * A thing model that is compiled into checks of the values that devices report
 * and that applications send.
 */
import type { Json } from "../kernel/Json.ts"
import { type Check, compile, compileFields, type Members, Misfit } from "./DataType.ts"
import type { PropertyElement, ServiceElement, ThingModel } from "./ThingModel.ts"

type CheckMembers = (members: Members) => Members | Misfit

interface CompiledProperty {
  readonly element: PropertyElement
  readonly check: Check
}

interface CompiledService {
  readonly element: ServiceElement
  /** Checks the inputs of a call; none may be missing. */
  readonly input: CheckMembers
}

/** The checks return a value in the form in which it is stored: `bool` as 0 or 1, `date` as text. */
export interface ModelValidator {
  readonly version: number
  readonly model: ThingModel
  readonly hasProperty: (id: string) => boolean
  /** Checks a property value that a device reports. */
  readonly reported: (id: string, value: Json) => Json | Misfit
  /** Checks a property value that an application sets. A read-only property admits none. */
  readonly desired: (id: string, value: Json) => Json | Misfit
  /** Returns the check of the outputs of an event; undefined: there is no such event. */
  readonly event: (id: string) => CheckMembers | undefined
  /** Returns the service; undefined: there is no such service. */
  readonly service: (id: string) => CompiledService | undefined
}

/** Compiles a model. */
export const make = (model: ThingModel, version: number): ModelValidator => {
  const properties = new Map(
    model.properties.map((element): [string, CompiledProperty] => [
      element.id,
      { element, check: compile(element.dataType) }
    ])
  )
  const events = new Map(model.events.map(({ id, outputData }) => [id, compileFields(outputData)]))
  const services = new Map(
    model.services.map((element): [string, CompiledService] => [
      element.id,
      { element, input: compileFields(element.inputData, true) }
    ])
  )
  const unknownProperty = (id: string) => new Misfit(6320, `tsl parse: params not exist -> ${id}`)
  return {
    version,
    model,
    hasProperty: (id) => properties.has(id),
    reported: (id, value) => properties.get(id)?.check(value) ?? unknownProperty(id),
    desired: (id, value) => {
      const property = properties.get(id)
      if (property === undefined) return new Misfit(6320, "the thing model has no such property")
      if (property.element.accessMode === "r") return new Misfit(6320, "the property cannot be set: it is read-only")
      return property.check(value)
    },
    event: (id) => events.get(id),
    service: (id) => services.get(id)
  }
}
