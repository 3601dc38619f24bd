/**
 * The management API: one definition from which the server, the OpenAPI
 * description, the documentation page and the typed client are made.
 */
import { HttpApi, OpenApi } from "effect/http-api"
import { AuditApi } from "./audit/AuditApi.ts"
import { Authorization } from "./middleware/Authorization.ts"
import { BindingApi } from "./provisioning/BindingApi.ts"
import { BleApi } from "./provisioning/BleApi.ts"
import { BrowserSessionApi } from "./browser-session/BrowserSessionApi.ts"
import { BulkCommandApi } from "./bulk/BulkCommandApi.ts"
import { CertificateApi } from "./certificate/CertificateApi.ts"
import { CodecApi } from "./codec/CodecApi.ts"
import { CommandApi } from "./command/CommandApi.ts"
import { ConfigurationApi } from "./configuration/ConfigurationApi.ts"
import { complete } from "./OpenApiTransform.ts"
import { DeviceAccessApi } from "./device-access/DeviceAccessApi.ts"
import { BatchApi } from "./device/BatchApi.ts"
import { DeviceApi } from "./device/DeviceApi.ts"
import { EventApi } from "./events/EventApi.ts"
import { DeviceGroupApi } from "./group/DeviceGroupApi.ts"
import { JobApi } from "./job/JobApi.ts"
import { MeshApi } from "./mesh/MeshApi.ts"
import { ObjectApi } from "./object/ObjectApi.ts"
import { OtaApi } from "./ota/OtaApi.ts"
import { OverviewApi } from "./overview/OverviewApi.ts"
import { ProductApi } from "./product/ProductApi.ts"
import { QuotaApi } from "./project/QuotaApi.ts"
import { ProjectApi } from "./project/ProjectApi.ts"
import { RequestCheck } from "./middleware/RequestCheck.ts"
import { SceneApi } from "./scene/SceneApi.ts"
import { HistoryRetentionApi } from "./history/HistoryRetentionApi.ts"
import { HistoryApi } from "./history/HistoryApi.ts"
import { SubscriptionApi } from "./subscription/SubscriptionApi.ts"
import { TraceApi } from "./trace/TraceApi.ts"
import { TopologyApi } from "./gateway/TopologyApi.ts"
import { ThingModelApi } from "./thing-model/ThingModelApi.ts"

/** The routes under `/openapi/v1`. */
export class Api extends HttpApi.make("device-cloud")
  .add(
    ProductApi,
    ThingModelApi,
    CodecApi,
    DeviceApi,
    BatchApi,
    TopologyApi,
    CommandApi,
    HistoryApi,
    HistoryRetentionApi
  )
  .add(
    CertificateApi,
    ConfigurationApi,
    EventApi,
    JobApi,
    ObjectApi,
    OtaApi,
    SceneApi,
    ProjectApi,
    MeshApi,
    BleApi,
    BindingApi,
    BulkCommandApi,
    DeviceGroupApi,
    AuditApi,
    QuotaApi,
    SubscriptionApi,
    OverviewApi,
    TraceApi
  )
  .middleware(Authorization)
  .add(BrowserSessionApi, DeviceAccessApi)
  .middleware(RequestCheck)
  .prefix("/openapi/v1")
  // A refusal names all that is wrong with a request, not only the first thing.
  .annotate(HttpApi.ParseOptions, { errors: "all" })
  .annotateMerge(OpenApi.annotations({
    title: "Device Cloud",
    version: "1",
    description: "Management of connected devices. Every response is an envelope: `code` 0 and `data`, or a non-zero " +
      "`code` and a `message` that says what to do.",
    transform: complete
  }))
{}
