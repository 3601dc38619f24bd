/**
 * Kinds of device that many projects have: what a product of each looks like, to begin
 * with.
 */
import type { ProductDraft } from "../product/Product.ts"
import type { ModelDefinition } from "./TypedModel.ts"

/** A product to begin with. */
export interface ProductTemplate {
  /** A word, for example `thermostat`. */
  readonly templateId: string
  readonly name: string
  /** A sentence. */
  readonly description: string
  /** What `Products.create` takes, but for the name. */
  readonly product: Omit<ProductDraft, "name">
  /** What `ThingModels.importFrom` takes as JSON text of type `metadata`. */
  readonly thingModel: ModelDefinition
}

const json = { validateType: "weak", dataFormat: "json", authType: "secret" } as const

const battery = {
  id: "BatteryLevel",
  name: "Battery level",
  accessMode: "r",
  dataType: { type: "int", min: 0, max: 100, unit: "%" }
} as const

const powerSwitch = {
  id: "PowerSwitch",
  name: "Power",
  accessMode: "rw",
  dataType: { type: "bool", specs: { 0: "off", 1: "on" } }
} as const

const restart = { id: "Restart", name: "Restart", callType: "async" } as const

const thermostat: ProductTemplate = {
  templateId: "thermostat",
  name: "Thermostat",
  description: "Measures the temperature of a room and heats to a target.",
  product: { nodeType: "direct", networkType: "wifi", ...json },
  thingModel: {
    properties: [
      powerSwitch,
      {
        id: "CurrentTemperature",
        name: "Temperature",
        accessMode: "r",
        dataType: { type: "double", min: -50, max: 100, unit: "°C" }
      },
      {
        id: "TargetTemperature",
        name: "Target temperature",
        accessMode: "rw",
        dataType: { type: "float", min: 5, max: 35, step: 0.5, unit: "°C" }
      },
      {
        id: "Mode",
        name: "Mode",
        accessMode: "rw",
        dataType: { type: "enum", specs: { 0: "manual", 1: "schedule", 2: "away" } }
      }
    ],
    events: [{
      id: "SensorFault",
      name: "Sensor fault",
      eventType: "error",
      outputData: [{ id: "code", name: "Code", dataType: { type: "int" } }]
    }],
    services: [restart]
  }
}

const lamp: ProductTemplate = {
  templateId: "lamp",
  name: "Lamp",
  description: "A lamp with brightness and colour temperature.",
  product: { nodeType: "direct", networkType: "wifi", ...json },
  thingModel: {
    properties: [
      powerSwitch,
      {
        id: "Brightness",
        name: "Brightness",
        accessMode: "rw",
        dataType: { type: "int", min: 1, max: 100, unit: "%" }
      },
      {
        id: "ColorTemperature",
        name: "Colour temperature",
        accessMode: "rw",
        dataType: { type: "int", min: 2200, max: 6500, unit: "K" }
      }
    ],
    services: [{
      id: "Blink",
      name: "Blink",
      callType: "sync",
      inputData: [{ id: "seconds", name: "Seconds", dataType: { type: "int", min: 1, max: 60 } }]
    }]
  }
}

const meter: ProductTemplate = {
  templateId: "meter",
  name: "Energy meter",
  description: "Counts the energy that a circuit takes, and can cut it off.",
  product: { nodeType: "direct", networkType: "ethernet", ...json },
  thingModel: {
    properties: [
      { id: "Energy", name: "Energy", accessMode: "r", dataType: { type: "double", min: 0, max: 1e9, unit: "kWh" } },
      { id: "Power", name: "Power", accessMode: "r", dataType: { type: "double", min: -1e6, max: 1e6, unit: "W" } },
      { id: "Voltage", name: "Voltage", accessMode: "r", dataType: { type: "float", min: 0, max: 1000, unit: "V" } },
      { id: "Current", name: "Current", accessMode: "r", dataType: { type: "float", min: 0, max: 1000, unit: "A" } },
      {
        id: "Relay",
        name: "Relay",
        accessMode: "rw",
        dataType: { type: "bool", specs: { 0: "open", 1: "closed" } }
      }
    ],
    events: [{
      id: "Overload",
      name: "Overload",
      eventType: "alert",
      outputData: [{ id: "power", name: "Power", dataType: { type: "double", unit: "W" } }]
    }]
  }
}

const tracker: ProductTemplate = {
  templateId: "tracker",
  name: "Tracker",
  description: "Reports where it is over a cellular network.",
  product: { nodeType: "direct", networkType: "cellular", ...json },
  thingModel: {
    properties: [
      {
        id: "Location",
        name: "Location",
        accessMode: "r",
        dataType: {
          type: "struct",
          specs: [
            { id: "latitude", name: "Latitude", dataType: { type: "double", min: -90, max: 90, unit: "°" } },
            { id: "longitude", name: "Longitude", dataType: { type: "double", min: -180, max: 180, unit: "°" } }
          ]
        }
      },
      { id: "Speed", name: "Speed", accessMode: "r", dataType: { type: "float", min: 0, max: 500, unit: "km/h" } },
      battery,
      {
        id: "ReportInterval",
        name: "Report interval",
        accessMode: "rw",
        dataType: { type: "int", min: 10, max: 86_400, unit: "s" }
      }
    ],
    events: [{ id: "Moved", name: "Moved", eventType: "alert" }],
    services: [{ id: "Locate", name: "Locate now", callType: "async" }]
  }
}

const doorSensor: ProductTemplate = {
  templateId: "door-sensor",
  name: "Door sensor",
  description: "Says through a gateway whether a door is open.",
  product: { nodeType: "gateway-sub", protocolType: "zigbee", ...json },
  thingModel: {
    properties: [
      {
        id: "Contact",
        name: "Contact",
        accessMode: "r",
        dataType: { type: "bool", specs: { 0: "closed", 1: "open" } }
      },
      battery
    ],
    events: [{ id: "Tampered", name: "Tampered with", eventType: "alert" }]
  }
}

const gateway: ProductTemplate = {
  templateId: "gateway",
  name: "Gateway",
  description: "Speaks for the sub-devices of a house.",
  product: { nodeType: "gateway", networkType: "ethernet", ...json },
  thingModel: {
    properties: [
      {
        id: "PermitJoin",
        name: "Permit joining",
        accessMode: "rw",
        dataType: { type: "bool", specs: { 0: "no", 1: "yes" } }
      },
      { id: "Uptime", name: "Uptime", accessMode: "r", dataType: { type: "double", min: 0, max: 1e9, unit: "s" } },
      { id: "Address", name: "Address", accessMode: "r", dataType: { type: "text", length: 64 } }
    ],
    services: [restart]
  }
}

/** All templates; each is a valid product with a valid thing model. */
export const productTemplates: ReadonlyArray<ProductTemplate> = [thermostat, lamp, meter, tracker, doorSensor, gateway]
