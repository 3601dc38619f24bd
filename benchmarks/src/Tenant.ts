/**
 * A project in the measured cloud: what bystanders and attackers make before they begin.
 */
import { createHmac } from "node:crypto"
import type { LoadDevice } from "./Load.ts"

/** Where the cloud listens. */
export interface CloudAddress {
  readonly http: string
  readonly mqtt: string
  readonly mqtts: string
}

/** What a project knows of itself. */
export interface TenantPlan extends CloudAddress {
  /** An access key of the project. */
  readonly key: string
}

/** The thing model of devices that report a temperature. */
const model = {
  properties: [
    { id: "temperature", name: "Temperature", accessMode: "rw", dataType: { type: "double", min: -40, max: 120 } },
    { id: "humidity", name: "Humidity", accessMode: "r", dataType: { type: "int", min: 0, max: 100 } },
    { id: "mode", name: "Mode", accessMode: "rw", dataType: { type: "text", length: 16 } }
  ]
}

export interface Product {
  readonly product_key: string
  readonly product_secret: string
}

/** The management API with one access key. */
export class Tenant {
  private readonly plan: TenantPlan
  constructor(plan: TenantPlan) {
    this.plan = plan
  }

  private async send(method: string, path: string, body?: unknown): Promise<Response> {
    const response = await fetch(`${this.plan.http}/openapi/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${this.plan.key}`, "content-type": "application/json" },
      ...body === undefined ? {} : { body: JSON.stringify(body) }
    })
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
    return response
  }

  /** The body of a response that is no envelope. */
  async text(path: string): Promise<string> {
    return (await this.send("GET", path)).text()
  }

  /** Fails if the response is not 200. */
  async call<A>(method: "GET" | "POST" | "PUT", path: string, body?: unknown): Promise<A> {
    const response = await this.send(method, path, body)
    return (await response.json() as { readonly data: A }).data
  }

  /** An access key, of this project if none is named. */
  async createKey(role: string, of: { readonly project_id?: string } = {}): Promise<string> {
    return (await this.call<{ readonly key: string }>("POST", "/access-keys", { name: role, role, ...of })).key
  }

  /** A product whose devices are connected directly. `properties` replaces those of the usual model. */
  async createProduct(name: string, properties: ReadonlyArray<unknown> = model.properties): Promise<Product> {
    const { product_info } = await this.call<{ readonly product_info: Product }>("POST", "/products", {
      name,
      node_type: "direct",
      network_type: "ethernet",
      validate_type: "weak",
      data_format: "json",
      auth_type: "secret",
      dynamic_register: true
    })
    await this.call("POST", `/products/${product_info.product_key}/thing-model`, {
      model_type: "metadata",
      model_data: JSON.stringify({ properties })
    })
    return product_info
  }

  /** Creates 1 to 10,000 devices. */
  async createDevices({ product_key }: Product, num: number): Promise<ReadonlyArray<LoadDevice>> {
    const batches = `/products/${product_key}/batch-things`
    const { batch_id } = await this.call<{ readonly batch_id: number }>("POST", batches, { num, desc: "" })
    const csv = await this.text(`${batches}/${batch_id}?format=csv`)
    return csv.trim().split("\n").slice(1).map((line) => {
      const [productKey, deviceName, deviceSecret, deviceId] = line.trim().split(",") as [
        string,
        string,
        string,
        string
      ]
      const text = `clientId${deviceName}deviceName${deviceName}productKey${productKey}`
      return {
        deviceId,
        productKey,
        deviceName,
        deviceSecret,
        clientId: `${deviceName}|signmethod=hmacsha1,authType=1|`,
        username: `${deviceName}&${productKey}`,
        password: createHmac("sha1", deviceSecret).update(text).digest("hex"),
        topic: `/sys/${productKey}/${deviceName}/thing/event/property/post`
      }
    })
  }
}

/** The management API of the cloud's owner. */
export class Owner extends Tenant {
  private readonly address: CloudAddress
  constructor(plan: TenantPlan) {
    super(plan)
    this.address = plan
  }

  /** Creates a project with a key. */
  async createTenant(name: string): Promise<TenantPlan> {
    const { id } = await this.call<{ readonly id: string }>("POST", "/projects", { name })
    return { ...this.address, key: await this.createKey("admin", { project_id: id }) }
  }
}
