/**
 * Which operations of the API are commands, by which names, and the columns of
 * their tables. The rest comes from the description of the API.
 */
import type { OperationCommand } from "./OperationCommand.ts"
import type { OperationId } from "./Operation.ts"

/** The commands of one kind of thing. */
export interface Resource {
  readonly summary: string
  readonly commands: Readonly<Record<string, OperationId | OperationCommand>>
}

const device = ["device_id", "product_key", "device_name", "nickname", "status", "enabled_status", "firmware_version"]
const firmware = ["id", "name", "version", "module", "product_key", "status", "size", "created_at"]
const upgradeRecords = ["device_id", "device_name", "version", "status", "step", "reason", "updated_at"]
const element = ["version", "warnings"]

/** An upgrade task tells the devices, and is for all of them unless some are named. */
const upgradeTask: NonNullable<OperationCommand["complete"]> = (body) => ({
  cloud_push: true,
  scope_mode: body["device_ids"] === undefined && body["group_id"] === undefined ? 0 : 1,
  ...body
})

/** All kinds of things, by the name of their command. */
export const resources: Readonly<Record<string, Resource>> = {
  products: {
    summary: "Kinds of device",
    commands: {
      list: {
        operation: "products.listProducts",
        columns: ["product_key", "name", "node_type", "data_format", "auth_type", "status", "created_at"]
      },
      get: "products.getProduct",
      create: "products.createProduct",
      update: { operation: "products.updateProduct", replaces: true },
      delete: "products.deleteProduct",
      release: { operation: "products.setProductStatus", summary: "Release a product", body: { status: "released" } },
      develop: {
        operation: "products.setProductStatus",
        summary: "Take a product back into development",
        body: { status: "developing" }
      },
      "rotate-secret": "products.rotateProductSecret",
      retention: "historyRetention.getHistoryRetention",
      "set-retention": "historyRetention.setHistoryRetention",
      "reset-retention": "historyRetention.deleteHistoryRetention",
      "export-history": "history.exportProductHistory",
      templates: { operation: "products.listProductTemplates", columns: ["template_id", "name", "description"] },
      broadcast: "commands.broadcast"
    }
  },
  devices: {
    summary: "Devices: what they are, report and are asked for",
    commands: {
      list: { operation: "devices.listDevices", columns: device },
      get: "devices.getDevice",
      create: "devices.createDevice",
      update: "devices.changeDevice",
      delete: "devices.deleteDevice",
      status: "devices.getDeviceStatus",
      refusals: {
        operation: "devices.listConnectRefusals",
        columns: ["time", "times", "address", "reason", "return_code"]
      },
      presence: {
        operation: "devices.readPresence",
        columns: ["time", "kind", "transport", "address", "reason"]
      },
      enable: { operation: "devices.changeDeviceStatus", summary: "Let a device connect", body: { action: "enable" } },
      disable: {
        operation: "devices.changeDeviceStatus",
        summary: "Disconnect a device and refuse it",
        body: { action: "disable" }
      },
      bind: { operation: "devices.changeDeviceStatus", summary: "Bind a device", body: { action: "bind" } },
      unbind: { operation: "devices.changeDeviceStatus", summary: "Unbind a device", body: { action: "unbind" } },
      tag: { operation: "devices.setDeviceTags", assignments: ["tags"] },
      diagnose: "devices.setDeviceDiagnosis",
      trace: "traces.startTrace",
      "show-trace": { operation: "traces.readTrace", columns: ["time", "kind", "transport", "topic", "reason"] },
      "end-trace": "traces.stopTrace",
      "rotate-secret": "devices.rotateDeviceSecret",
      properties: "devices.getDeviceProperties",
      set: { operation: "commands.setDeviceProperties", assignments: ["params"] },
      call: { operation: "commands.callDeviceService", assignments: ["params"] },
      send: "commands.sendUserMessage",
      "send-raw": "commands.sendRaw",
      history: "history.listPropertyHistory",
      events: "history.listDeviceEvents",
      "export-history": "history.exportDeviceHistory",
      groups: { operation: "deviceGroups.listGroupsOfDevice", columns: ["group_id", "name", "type"] }
    }
  },
  batches: {
    summary: "Devices that are created together",
    commands: {
      list: "batches.listBatches",
      get: "batches.getBatch",
      create: "batches.createBatch",
      delete: "batches.deleteBatch"
    }
  },
  models: {
    summary: "Thing models: what devices report and do",
    commands: {
      versions: { operation: "thingModels.listThingModelVersions", columns: ["version", "created_at"] },
      copy: { operation: "thingModels.copyThingModel", columns: element },
      compare: "thingModels.compareThingModel",
      clear: { operation: "thingModels.clearThingModel", columns: element },
      "add-element": { operation: "thingModels.addThingModelElement", columns: element },
      "update-element": { operation: "thingModels.updateThingModelElement", columns: element },
      "remove-element": { operation: "thingModels.removeThingModelElement", columns: element }
    }
  },
  codecs: {
    summary: "Descriptions of the bytes of raw products",
    commands: {
      get: "codecs.getCodec",
      put: "codecs.putCodec",
      delete: "codecs.deleteCodec",
      try: "codecs.tryCodec"
    }
  },
  shadows: {
    summary: "Reported and desired values",
    commands: {
      get: "devices.getDeviceShadow",
      set: { operation: "devices.updateDeviceShadow", assignments: ["state", "desired"] },
      forget: "devices.removeReportedProperty"
    }
  },
  commands: {
    summary: "What was asked of a device, and what became of it",
    commands: {
      list: {
        operation: "commands.listMessages",
        columns: ["message_id", "type", "service_id", "params", "state", "code", "created_at"]
      },
      get: "commands.getMessage",
      cancel: "commands.cancelMessage"
    }
  },
  bulk: {
    summary: "One command to many devices",
    commands: {
      list: {
        operation: "bulkCommands.listBulkCommands",
        columns: ["bulk_id", "service_id", "params", "status", "total", "created_at"]
      },
      get: "bulkCommands.getBulkCommand",
      create: "bulkCommands.createBulkCommand",
      devices: "bulkCommands.listBulkCommandDevices",
      cancel: "bulkCommands.cancelBulkCommand"
    }
  },
  jobs: {
    summary: "Tasks that many devices carry out",
    commands: {
      list: { operation: "jobs.listJobs", columns: ["job_id", "name", "product_key", "status", "created_at"] },
      get: "jobs.getJob",
      create: "jobs.createJob",
      devices: "jobs.listJobDevices",
      cancel: "jobs.cancelJob",
      delete: "jobs.removeJob"
    }
  },
  firmware: {
    summary: "Firmware and upgrades",
    commands: {
      list: { operation: "ota.listFirmwares", columns: firmware },
      get: "ota.getFirmware",
      delete: "ota.deleteFirmware",
      verify: "ota.createVerifyTask",
      verification: { operation: "ota.getVerifyTask", columns: upgradeRecords },
      pass: { operation: "ota.decideVerifyTask", summary: "End a verify task as passed", body: { result: true } },
      fail: { operation: "ota.decideVerifyTask", summary: "End a verify task as failed", body: { result: false } },
      upgrade: {
        operation: "ota.createUpgradeTask",
        summary: "Upgrade all devices of the product, or those that are named",
        known: ["scope_mode", "upgrade_type"],
        complete: upgradeTask
      },
      upgrades: {
        operation: "ota.listUpgradeTasks",
        columns: ["task_id", "status", "scope_mode", "dynamic", "stage", "summary", "created_at"]
      },
      "upgrade-status": { operation: "ota.getUpgradeTask", columns: upgradeRecords },
      "upgrade-progress": "ota.getTaskProgress",
      "upgrade-failures": "ota.getTaskFailures",
      "confirm-upgrade": "ota.confirmUpgradeTask",
      "open-stage": "ota.openUpgradeStage",
      "cancel-upgrade": { operation: "ota.cancelUpgradeTask", body: { action: "cancel" } },
      "delete-task": "ota.cancelTask",
      version: "ota.getVersion",
      diagnose: "ota.diagnoseUpgrade",
      "signing-key": "ota.getSigningKey",
      "set-signing-key": "ota.setSigningKey",
      "remove-signing-key": "ota.removeSigningKey"
    }
  },
  configurations: {
    summary: "Remote configuration",
    commands: {
      "list-product": "configurations.listProductConfigurations",
      "put-product": "configurations.putProductConfiguration",
      "push-product": "configurations.pushProductConfiguration",
      "delete-product": "configurations.deleteProductConfiguration",
      progress: "configurations.listConfigurationProgress",
      "push-group": "configurations.pushGroupConfiguration",
      "list-device": "configurations.listDeviceConfigurations",
      "put-device": "configurations.putDeviceConfiguration",
      "push-device": "configurations.pushDeviceConfiguration",
      "delete-device": "configurations.deleteDeviceConfiguration"
    }
  },
  scenes: {
    summary: "Rules: triggers, conditions, actions",
    commands: {
      list: { operation: "scenes.listScenes", columns: ["id", "name", "status", "desc", "updated_at"] },
      get: "scenes.getScene",
      create: "scenes.createScene",
      update: { operation: "scenes.updateScene", replaces: true },
      delete: "scenes.deleteScene",
      run: "scenes.runScene",
      enable: { operation: "scenes.setSceneStatus", summary: "Enable a scene", body: { status: "enable" } },
      disable: { operation: "scenes.setSceneStatus", summary: "Disable a scene", body: { status: "disable" } },
      executions: {
        operation: "scenes.listExecutions",
        columns: ["execution_id", "status", "reason", "triggered_at", "updated_at"]
      },
      explain: "scenes.explainScene",
      "next-times": "scenes.listUpcomingTimes",
      "webhook-key": "scenes.getWebhookKey",
      "rotate-webhook-key": "scenes.rotateWebhookKey"
    }
  },
  gateways: {
    summary: "Gateways and their sub-devices",
    commands: {
      devices: "topology.listTopology",
      "start-adding": {
        operation: "topology.changeTopology",
        summary: "Let a gateway look for sub-devices",
        body: { action: "sub.add.start" }
      },
      "stop-adding": {
        operation: "topology.changeTopology",
        summary: "End the search of a gateway",
        body: { action: "sub.add.stop" }
      },
      "of-device": "topology.readGateway",
      session: "topology.readAddSession",
      added: "topology.listAddedSubDevices",
      add: "topology.addSubDevices",
      remove: "topology.removeSubDevices"
    }
  },
  groups: {
    summary: "Groups of devices",
    commands: {
      list: {
        operation: "deviceGroups.listDeviceGroups",
        columns: ["group_id", "name", "type", "query", "created_at"]
      },
      get: "deviceGroups.getDeviceGroup",
      create: "deviceGroups.createDeviceGroup",
      update: "deviceGroups.changeDeviceGroup",
      delete: "deviceGroups.deleteDeviceGroup",
      devices: "deviceGroups.listDevicesOfGroup",
      add: "deviceGroups.addDevicesToGroup",
      remove: "deviceGroups.removeDevicesFromGroup"
    }
  },
  subscriptions: {
    summary: "Named readers of events",
    commands: {
      list: {
        operation: "subscriptions.listSubscriptions",
        columns: ["subscription_id", "name", "filter", "created_at"]
      },
      get: "subscriptions.getSubscription",
      create: "subscriptions.createSubscription",
      update: "subscriptions.changeSubscription",
      delete: "subscriptions.deleteSubscription",
      read: "subscriptions.readSubscriptionEvents",
      ack: "subscriptions.acknowledgeSubscriptionEvents",
      seek: "subscriptions.seekSubscription",
      resume: "subscriptions.resumeSubscription"
    }
  },
  certificates: {
    summary: "Client certificates of devices, and who issues them",
    commands: {
      list: {
        operation: "certificates.listCertificates",
        columns: ["serial", "status", "subject", "not_after", "valid_until"]
      },
      add: {
        operation: "certificates.addCertificate",
        // The cloud makes a private key if the device has none.
        showsSecretOnce: ({ certificate, csr }) => certificate === undefined && csr === undefined
      },
      revoke: "certificates.revokeCertificate",
      authorities: {
        operation: "certificates.listAuthorities",
        columns: ["authority_id", "name", "kind", "state", "not_after"]
      },
      "add-authority": "certificates.registerAuthority",
      "verify-authority": "certificates.verifyAuthority",
      "set-revocations": "certificates.putRevocationList",
      "remove-authority": "certificates.removeAuthority"
    }
  },
  mesh: {
    summary: "Bluetooth mesh networks",
    commands: {
      list: "mesh.listMeshNetworks",
      get: "mesh.getMeshNetwork",
      create: "mesh.createMeshNetwork",
      delete: "mesh.deleteMeshNetwork",
      nodes: "mesh.listMeshNodes",
      "add-node": "mesh.addMeshNode",
      "remove-node": "mesh.removeMeshNode",
      send: "mesh.sendMeshRawData"
    }
  },
  projects: {
    summary: "Projects and their quotas",
    commands: {
      list: "projects.listProjects",
      get: "projects.getProject",
      create: "projects.createProject",
      delete: "projects.deleteProject",
      overview: "overview.getOverview",
      activity: "overview.getActivity",
      nodes: "overview.listNodes",
      usage: "quotas.getOwnQuotas",
      quotas: "quotas.getQuotas",
      "set-quotas": "quotas.setQuotas"
    }
  },
  keys: {
    summary: "Access keys",
    commands: {
      list: {
        operation: "projects.listAccessKeys",
        columns: ["id", "name", "role", "created_at", "last_used_at", "expires_at"]
      },
      create: { operation: "projects.createAccessKey", showsSecretOnce: () => true },
      delete: "projects.deleteAccessKey"
    }
  },
  audit: {
    summary: "Who changed what",
    commands: {
      list: {
        operation: "audit.listAuditEntries",
        columns: ["time", "key_name", "action", "resource_kind", "resource_id", "address", "result"]
      }
    }
  }
}
