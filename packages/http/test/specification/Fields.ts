/**
 * What a field of the specification holds, and the resources with their fields.
 */

/** What a field holds. */
export type Kind =
  | "string"
  | "int"
  | "bool"
  /** Unix time. */
  | "seconds"
  /** RFC 3339 with offset; unset: empty or null. */
  | "date"
  | "object"
  | "list"
  /** Present; its type is not shown. */
  | "any"
  | { readonly oneOf: ReadonlyArray<string | number> }
  | { readonly members: Fields }
  | { readonly each: Fields }

export interface Fields {
  readonly [name: string]: Kind
}

export const oneOf = (...values: ReadonlyArray<string | number>): Kind => ({ oneOf: values })
export const members = (fields: Fields): Kind => ({ members: fields })
export const listOf = (fields: Fields): Kind => ({ each: fields })

export const product: Fields = {
  product_key: "string",
  product_secret: "string",
  name: "string",
  device_type: "string",
  network_type: oneOf("wifi", "ethernet", "cellular", "lorawan", "others", "wifi+ble-mesh", ""),
  node_type: oneOf("direct", "gateway", "gateway-sub"),
  protocol_type: oneOf("zigbee", "ble", "ble-mesh", ""),
  validate_type: oneOf("none", "weak"),
  data_format: oneOf("json", "raw"),
  register_at: "date",
  created_at: "date",
  updated_at: "date",
  dynamic_register: "bool",
  status: oneOf("developing", "released"),
  auth_type: oneOf("secret"),
  platform: oneOf(0, 1, 2, 3, 4),
  platform_name: "string",
  data_source: oneOf(0, 1, 2, 3),
  id: "any",
  project_id: "any",
  description: "any",
  photo_url: "any",
  configuration: "any"
}

export const deviceStatus = oneOf("online", "offline", "unactive")
export const enabledStatus = oneOf("enable", "disable")

export const device: Fields = {
  device_id: "string",
  device_name: "string",
  product_key: "string",
  device_secret: "string",
  product_secret: "string",
  product_name: "string",
  nickname: "string",
  node_type: product["node_type"]!,
  protocol_type: product["protocol_type"]!,
  validate_type: product["validate_type"]!,
  data_format: product["data_format"]!,
  auth_type: product["auth_type"]!,
  status: deviceStatus,
  enabled_status: enabledStatus,
  register_at: "date",
  updated_at: "date",
  created_at: "date",
  batch_id: "int",
  ip: "string",
  firmware_version: "string",
  time_zone: "string",
  platform: product["platform"]!,
  data_source: product["data_source"]!,
  platform_name: "string",
  access_key: "any",
  device_type: "any",
  cloud_gtw_mqtt_param: "any",
  cloud_gtw_device_uuid: "any",
  topics: "any",
  product_id: "any",
  sub_amount: "any",
  is_mocker: "any"
}

export const listedDevice: Fields = { ...device, iot_platform: "int", diagnosis_enabled: "bool" }

/** The answer to the creation of a device. */
export const deviceRecord: Fields = {
  device_id: "string",
  product_key: "string",
  device_name: "string",
  device_secret: "string",
  nickname: "string",
  status: deviceStatus,
  created_at: "date",
  register_at: "date",
  updated_at: "date",
  batch_id: "int",
  enabled_status: enabledStatus,
  ip: "string",
  firmware_version: "string"
}

export const dataType = members({ type: "string" })
export const parameter: Fields = { id: "string", name: "string", dataType }
export const element: Fields = {
  id: "string",
  name: "string",
  required: "bool",
  standard: "bool",
  desc: "string",
  method: "string",
  outputData: listOf(parameter)
}

/** The metadata form. */
export const thingModel = members({
  properties: listOf({
    id: "string",
    name: "string",
    required: "bool",
    standard: "bool",
    funcType: oneOf("property"),
    accessMode: oneOf("r", "w", "rw"),
    dataType
  }),
  events: listOf({ ...element, funcType: oneOf("event"), eventType: "string" }),
  services: listOf({
    ...element,
    funcType: oneOf("service"),
    callType: "string",
    // Of the services that are not generated: `parameter`.
    inputData: listOf({ id: "string" })
  })
})

export const thingShadow = members({
  state: members({ desired: "object", reported: "object" }),
  metadata: members({
    desired: members({ power: members({ timestamp: "seconds" }) }),
    reported: members({ temperature: members({ timestamp: "seconds" }) })
  }),
  id: "int",
  timestamp: "seconds",
  status: deviceStatus
})

export const firmware: Fields = {
  id: "int",
  name: "string",
  version: "string",
  oss_path: "string",
  algorithms: oneOf(1),
  hash: "string",
  status: oneOf(0, 1, 2, 3, 4),
  ongoing: "bool",
  remark: "string",
  module: "string",
  created_at: "date",
  updated_at: "date",
  product_key: "string",
  product_name: "string"
}

/** In a list. */
export const upgradeTask: Fields = {
  task_id: "int",
  firmware_id: "int",
  upgrade_type: oneOf(1),
  upgrade_policy: "int",
  status: oneOf(0, 1, 2, 3, 4),
  scope_mode: oneOf(0, 1),
  created_at: "date",
  updated_at: "date",
  need_app_confirm: "bool",
  is_app_confirmed: "bool"
}

export const deviceTask: Fields = {
  device_id: "string",
  device_name: "string",
  version: "string",
  step: "int",
  status: oneOf(1, 2, 3, 4, 5),
  updated_at: "date",
  thing_status: deviceStatus,
  need_app_confirm: "bool",
  is_app_confirm: "bool"
}

export const upgradeInfo: Fields = {
  size: "int",
  sign: "string",
  sign_method: oneOf("md5"),
  version: "string",
  url: "string",
  module: "string",
  task_id: "int",
  description: "string",
  need_app_confirm: "bool",
  is_app_confirmed: "bool"
}

export const meshNetwork: Fields = {
  network_key: "string",
  app_key: "string",
  unicast_cursor: "int",
  provisioner_cursor: "int",
  created_at: "date",
  updated_at: "date"
}

export const paged = (item: Fields): Fields => ({
  results: listOf(item),
  total: "int",
  page: "int",
  page_size: "int",
  pages: "int"
})

export const page: Fields = { page: "int", page_size: "int" }

export const triple: Fields = { product_key: "string", device_name: "string", device_secret: "string" }
