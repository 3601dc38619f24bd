/**
 * The parts of a scene, which are its triggers, conditions and actions. On the
 * wire a part is a `URI` and its `params` (docs/api/scenes.md). In the domain it
 * is a tagged value.
 */
import { Schema } from "effect"
import { DeviceName } from "../../device/Device.ts"
import type { InputIssue } from "../../kernel/InvalidInput.ts"
import { Text } from "../../kernel/Text.ts"
import { ProductKey } from "../../product/Product.ts"
import { CompareType, Comparison, refuseComparison } from "./Comparison.ts"

/** Stands for any device of a product, any property, any event or any status. */
export const wildcard = "*"

export const WatchedStatus = Schema.Literals(["online", "offline", wildcard])
export type WatchedStatus = typeof WatchedStatus.Type

/** The fields of a part that concerns devices. */
export const ofDevices = {
  productKey: ProductKey,
  /** In a condition, {@link wildcard} stands for the device that fired the scene. */
  deviceName: Schema.Union([DeviceName, Schema.Literal(wildcard)])
}

/** The fields of a part that concerns a value. Without a comparison any value will do. */
export const ofValue = { comparison: Schema.NullOr(Comparison) }

/** A parameter that may be left out. An empty text leaves it out as well. */
export const OrEmpty = <S extends Schema.Constraint>(schema: S) =>
  Schema.optional(Schema.Union([schema, Schema.Literal("")]))

/** A parameter that names something. */
export const Name = Text(128)

/** The parameters of a part that concerns devices. */
export const deviceParams = {
  product_key: Name,
  device_name: Name.annotate({ description: "`*`: any device of the product" })
}

/** The parameters of a part that compares a value. */
export const comparisonParams = {
  compare_type: OrEmpty(CompareType),
  compare_val: Schema.optional(Text(1024))
}

/** Declares how a kind of part looks on the wire. */
export const partRecord = <const Uri extends string, const Params extends Schema.Struct.Fields>(
  uri: Uri,
  params: Params
) =>
  Schema.Struct({
    URI: Schema.Literal(uri),
    params: Schema.Struct({ type: Schema.optional(Schema.Literals([uri, ""])), ...params })
  })

/** Writes the parameters of {@link deviceParams}. */
export const writeDevices = (
  { deviceName, productKey }: { readonly productKey: string; readonly deviceName: string }
) => ({ product_key: productKey, device_name: deviceName })

/** Writes the parameters of {@link comparisonParams}. */
export const writeComparison = (comparison: Comparison | null) =>
  comparison === null ? {} : { compare_type: comparison.type, compare_val: comparison.value }

/** Generated clients write a parameter that is left out as an empty value. */
const isGiven = (value: unknown): boolean =>
  value !== undefined && value !== null && value !== "" && value !== 0 &&
  (typeof value !== "object" || Object.values(value).some(isGiven))

/** Reads the parameters of one part, whose types are right, and collects everything that is wrong with them. */
export class ParamsReader {
  /** What is wrong. The paths start at the parameters. */
  readonly issues: Array<InputIssue> = []
  readonly #params: Readonly<Record<string, unknown>>

  /** `taken` are the parameters that the kind of part takes, beside `type`. All others must be empty. */
  constructor(uri: string, taken: Schema.Struct.Fields, params: Readonly<Record<string, unknown>>) {
    this.#params = params
    if (isGiven(params["type"]) && params["type"] !== uri) this.refuse("type", `Expected ${uri}, as the URI`)
    for (const [name, value] of Object.entries(params)) {
      if (name !== "type" && isGiven(value) && value !== wildcard && !Object.hasOwn(taken, name)) {
        this.refuse(name, `Expected nothing: ${uri} has no such parameter`)
      }
    }
  }

  refuse(name: string, message: string): void {
    this.issues.push({ path: [name], message })
  }

  /** Reads a text. Without a fallback the text must not be empty. */
  text(name: string, fallback?: string): string {
    const value = this.#params[name]
    if (typeof value === "string" && value !== "") return value
    if (fallback === undefined) this.refuse(name, "Expected a text that is not empty")
    return fallback ?? ""
  }

  /** Reads texts that may be left out, each under the name that `names` gives it. */
  given<const Names extends Readonly<Record<string, string>>>(
    names: Names
  ): { readonly [Name in keyof Names as Names[Name]]?: string } {
    return Object.fromEntries(
      Object.entries(names).flatMap(([param, name]) => isGiven(this.#params[param]) ? [[name, this.text(param)]] : [])
    ) as { readonly [Name in keyof Names as Names[Name]]?: string }
  }

  /** Reads a number; 0 if it is left out. */
  number(name: string): number {
    return this.#params[name] as number | undefined ?? 0
  }

  /** Reads a parameter of whatever type. */
  value(name: string): unknown {
    return this.#params[name]
  }

  /** Reads {@link deviceParams}. */
  devices() {
    return {
      productKey: this.text("product_key") as ProductKey,
      deviceName: this.text("device_name") as DeviceName | typeof wildcard
    }
  }

  /** Reads {@link comparisonParams}. */
  comparison(): Comparison | null {
    const type = this.text("compare_type", "")
    const value = this.text("compare_val", "")
    if (type === "") {
      if (value !== "") this.refuse("compare_type", "Expected one, since there is a compare_val")
      return null
    }
    const comparison = { type: type as CompareType, value }
    const reason = refuseComparison(comparison)
    if (reason !== undefined) this.refuse("compare_val", reason)
    return comparison
  }
}
