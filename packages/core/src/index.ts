/**
 * The domain of Device Cloud as Effect services.
 */
export { type ActivityPoint, type ActivitySeries, maxActivityPoints } from "./activity/ActivitySeries.ts"
export * from "./activity/ActivityStore.ts"
export { ProjectActivity } from "./activity/ProjectActivity.ts"
export { Troubles } from "./activity/Troubles.ts"
export * from "./activity/TroubleStore.ts"
export { AuditedAction, CurrentAction } from "./audit/AuditedAction.ts"
export * from "./audit/AuditEntry.ts"
export { AuditDays, AuditLog } from "./audit/AuditLog.ts"
export * from "./audit/AuditStore.ts"
export {
  type BulkCommand,
  BulkCommandCancelled,
  BulkCommandDraft,
  BulkCommandNotFound,
  BulkCommandStatus,
  type BulkCounts,
  type BulkDevice,
  BulkDeviceState,
  BulkScopeUnfit,
  maxBulkDevices,
  maxRunning as maxRunningBulkCommands,
  type NewBulkCommand,
  TooManyBulkCommands
} from "./bulk/BulkCommand.ts"
export { BulkCommands } from "./bulk/BulkCommands.ts"
export * from "./bulk/BulkCommandStore.ts"
export {
  AuthorityDraft,
  AuthorityKind,
  AuthorityNotFound,
  AuthorityState,
  AuthorityVerification,
  type CertificateAuthority,
  CertificateDraft,
  CertificateNotFound,
  CertificateStatus,
  CertificateTaken,
  type DeviceCertificate,
  expiryOf,
  maxAuthorities,
  maxCertificates,
  type NewAuthority,
  type NewCertificate,
  NotACertificateProduct,
  type RevocationList,
  RevocationListDraft,
  statusOf as certificateStatusOf,
  TooManyCertificates
} from "./certificate/Certificate.ts"
export { CertificateAuthorities } from "./certificate/CertificateAuthorities.ts"
export { Certificates, type IssuedCertificate } from "./certificate/Certificates.ts"
export * from "./certificate/CertificateStore.ts"
export * from "./certificate/X509.ts"
export * from "./cluster/NodeBus.ts"
export { type Counted, SharedCounts, type SharedLimit } from "./cluster/SharedCounts.ts"
export {
  CodecDescription,
  CodecDirection,
  type CodecMessage,
  CodecMisfit,
  type Part as CodecPart
} from "./codec/CodecDescription.ts"
export { type CodecResult, Codecs, type CodecTrial, ProductNotRaw } from "./codec/Codecs.ts"
export * from "./codec/CodecStore.ts"
export * as ProductCodec from "./codec/ProductCodec.ts"
export { type Broadcast, Broadcasts, maxBroadcastBytes, TooManyBroadcasts } from "./command/Broadcasts.ts"
export {
  type CallOptions,
  type Command,
  CommandNotFound,
  CommandNotQueued,
  type CommandProgress,
  CommandState,
  DeviceNotConnected,
  finalRank,
  maxWaiting,
  type NewCommand,
  NoReply,
  rankOf,
  RawBytes,
  rawMethod,
  rawTopic,
  TimeToLive,
  TooManyCommands,
  userMethod,
  userReplyMethod,
  WaitTime
} from "./command/Command.ts"
export { Commands, type Waited, type WaitOptions } from "./command/Commands.ts"
export * from "./command/CommandStore.ts"
export { UserMessage } from "./command/UserMessage.ts"
export * from "./configuration/Configuration.ts"
export { Configurations, TooManyPushes } from "./configuration/Configurations.ts"
export * from "./configuration/ConfigurationStore.ts"
export * from "./connection/DeviceSession.ts"
export * from "./connection/DeviceSessions.ts"
export { PresenceHistory, type PresencePage } from "./connection/PresenceHistory.ts"
export * from "./connection/PresenceStore.ts"
export * from "./connection/PresenceTimes.ts"
export { Batches, type BatchMember } from "./device/Batches.ts"
export {
  type Batch,
  BatchDraft,
  BatchNotFound,
  CloudGatewayAccount,
  Device,
  DeviceChanges,
  type DeviceDetail,
  DeviceDisabled,
  DeviceDraft,
  DeviceId,
  type DeviceIdentity,
  deviceIdentity,
  deviceKey,
  DeviceName,
  DeviceNamesTaken,
  DeviceNotFound,
  type DeviceReference,
  DeviceStatus,
  maxTags,
  type NewDevice,
  NotACloudGateway,
  type StoredCredentials,
  Tags
} from "./device/Device.ts"
export * from "./device/DeviceFilter.ts"
export * from "./device/DeviceLifecycle.ts"
export { Devices } from "./device/Devices.ts"
export * from "./device/DeviceStore.ts"
export * as DeviceCloud from "./DeviceCloud.ts"
export * from "./events/DeviceChange.ts"
export * from "./events/DomainEvent.ts"
export { type EventDocument, eventDocument, eventText, eventTypes, upgradeStatuses } from "./events/EventDocument.ts"
export * from "./events/Reactions.ts"
export { EventSink, EventSinkError } from "./feed/EventSink.ts"
export * from "./feed/Feed.ts"
export type { FeedFollower } from "./feed/FeedFollower.ts"
export * from "./feed/FeedPlace.ts"
export * from "./feed/FeedReaderStore.ts"
export * from "./feed/FeedStore.ts"
export { FeedLimits } from "./FeedRetention.ts"
export { sessionErrorMethod } from "./gateway/CarriedSessions.ts"
export { SubDeviceSessions } from "./gateway/SubDeviceSessions.ts"
export { Topologies } from "./gateway/Topologies.ts"
export {
  type AddSession,
  AddSessionDraft,
  AddSessionEnded,
  AddSessionNotFound,
  admits,
  BelongsToOtherGateway,
  maxSubDevices,
  NotAGateway,
  NotASubDevice,
  NotInTopology,
  SignedSubDevice,
  SignedSubDevices,
  SubDeviceNames,
  TooManySubDevices
} from "./gateway/Topology.ts"
export {
  type AttachAttempt,
  type AttachedBy,
  claimAfter,
  judgeAttempt,
  type TopologyClaim
} from "./gateway/TopologyClaim.ts"
export * from "./gateway/TopologyStore.ts"
export {
  type DeviceGroup,
  DeviceGroupChanges,
  DeviceGroupDraft,
  DeviceGroupFull,
  DeviceGroupKindMismatch,
  DeviceGroupNameTaken,
  DeviceGroupNotFound,
  DeviceQuery,
  maxGroupAddition,
  maxGroupDevices,
  type NewDeviceGroup
} from "./group/DeviceGroup.ts"
export { DeviceGroups } from "./group/DeviceGroups.ts"
export * from "./group/DeviceGroupStore.ts"
export * from "./history/Aggregate.ts"
export { type DeviceHistory, History } from "./history/History.ts"
export * from "./history/HistoryEntry.ts"
export * from "./history/HistoryOf.ts"
export type { HistoryPoint } from "./history/HistoryPoint.ts"
export {
  type HistoryEntries,
  type HistoryQuery,
  type HistorySeries,
  maxQueried as maxQueriedHistory,
  maxSeries as maxHistorySeries
} from "./history/HistoryQuery.ts"
export {
  type HistoryDraft,
  HistoryFill,
  HistoryFunction,
  HistoryInterval,
  HistoryLimit,
  type HistoryPlot,
  type HistoryRead,
  historyRead,
  HistoryTime,
  maxPoints as maxHistoryPoints
} from "./history/HistoryRead.ts"
export * from "./history/HistoryRetention.ts"
export * from "./history/HistoryRetentionStore.ts"
export { type HistoryAddition, HistoryFollowsFeed, type HistoryScan, HistoryStore } from "./history/HistoryStore.ts"
export {
  Idempotency,
  IdempotencyConflict,
  MaxIdempotencyKeys,
  TooManyIdempotencyKeys
} from "./idempotency/Idempotency.ts"
export * from "./idempotency/IdempotencyStore.ts"
export {
  type AssignedTask,
  type Job,
  type JobDetail,
  JobDevicesNotFound,
  JobDocument,
  JobDraft,
  JobNotFound,
  JobStateForbids,
  JobStatus,
  type JobTask,
  JobTaskDetails,
  type JobTaskReport,
  JobTaskState,
  type NewJob,
  openStates,
  outcomeOf,
  type ReportOutcome
} from "./job/Job.ts"
export { Jobs } from "./job/Jobs.ts"
export * from "./job/JobStore.ts"
export { abandonable } from "./kernel/Abandonable.ts"
export * as Batcher from "./kernel/Batcher.ts"
export { ChurnMap } from "./kernel/ChurnMap.ts"
export {
  type ClientOrigin,
  clientOrigin,
  type ForwardedHeaders,
  isTrustedProxy,
  parseTrustedProxies,
  TrustedProxies
} from "./kernel/ClientOrigin.ts"
export { InputIssue, inputIssues, InvalidInput } from "./kernel/InvalidInput.ts"
export { equalJson, type Json } from "./kernel/Json.ts"
export { type DataKey, KeyRing, KeyRingError, type SealedDataKey } from "./kernel/KeyRing.ts"
export { KnownAddresses, makeKnownAddresses } from "./kernel/KnownAddresses.ts"
export * from "./kernel/Mac.ts"
export { addressGroup, type AddressRange, plainAddress } from "./kernel/NetworkAddress.ts"
export { Newcomers, type NewcomersOptions } from "./kernel/Newcomers.ts"
export * as Outage from "./kernel/Outage.ts"
export * from "./kernel/Page.ts"
export { LookInterval } from "./kernel/Periodic.ts"
export { Randomness } from "./kernel/Randomness.ts"
export { RateWindow } from "./kernel/RateWindow.ts"
export { PreviousSecret, rightSecret, type Rotation, RotationDraft } from "./kernel/RotatedSecret.ts"
export * as SteadyClock from "./kernel/SteadyClock.ts"
export { StoreError, untilStored } from "./kernel/StoreError.ts"
export * from "./kernel/StoreHealth.ts"
export { NonBlankText, printable, Text } from "./kernel/Text.ts"
export { Weekday } from "./kernel/TimeWindow.ts"
export { type TokenBucket, TokenBuckets } from "./kernel/TokenBucket.ts"
export { Turns, type TurnsOptions } from "./kernel/Turns.ts"
export {
  cursorOf,
  firstCursors,
  MeshAddressTaken,
  type MeshNetwork,
  MeshNetworkDraft,
  MeshNetworkFull,
  MeshNetworkNotFound,
  type MeshNode,
  MeshNodeDraft,
  MeshNodeExists,
  MeshNodeNotFound,
  MeshNodeType,
  MeshRawData,
  NetworkKeyTaken,
  type NewMeshNetwork,
  NoGatewayOnline,
  place,
  type Placement
} from "./mesh/MeshNetwork.ts"
export { MeshNetworks } from "./mesh/MeshNetworks.ts"
export * from "./mesh/MeshStore.ts"
export { inParts } from "./object/ObjectParts.ts"
export { MaxObjectSize, Objects } from "./object/Objects.ts"
export * from "./object/ObjectStore.ts"
export {
  type ByteRange,
  isObjectId,
  ObjectInUse,
  ObjectNotFound,
  objectsPath,
  ObjectTooLarge,
  type StoredObject
} from "./object/StoredObject.ts"
export type { Diagnosis } from "./ota/device/UpgradeDiagnosis.ts"
export { upgradeMethod } from "./ota/device/UpgradeMessage.ts"
export { Upgrades } from "./ota/device/Upgrades.ts"
export {
  type Firmware,
  type FirmwareDetail,
  FirmwareDraft,
  type FirmwareFilter,
  FirmwareNotFound,
  FirmwareState,
  type FirmwareStatus,
  FirmwareVersion,
  FirmwareVersionTaken,
  ModuleName,
  type NewFirmware,
  verifiable,
  type VerificationStatus
} from "./ota/firmware/Firmware.ts"
export { Firmwares } from "./ota/firmware/Firmwares.ts"
export { type ImageKey, ImageSignatures, SigningAlgorithm } from "./ota/firmware/ImageSignatures.ts"
export { type SigningKey, SigningKeyDraft } from "./ota/firmware/SigningKey.ts"
export { SigningKeys } from "./ota/firmware/SigningKeys.ts"
export * from "./ota/task/OtaStore.ts"
export { rolloutDelay } from "./ota/task/Rollout.ts"
export { holdsNewcomers, isStagePassed, type OpenShare, stageSize } from "./ota/task/Stages.ts"
export { type StartWindow, timeZoneTag } from "./ota/task/StartWindow.ts"
export { UpgradeTaskDraft, VerifyTaskDraft } from "./ota/task/TaskDraft.ts"
export {
  type FailureCount,
  maxFailureReasons,
  maxProgressPoints,
  progressResolution,
  type TaskFailures,
  type TaskProgress
} from "./ota/task/TaskProgress.ts"
export {
  advance as advanceUpgrade,
  deviceCount,
  isAborted as isTaskAborted,
  isFinal as isUpgradeFinal,
  isOngoing,
  isPushed,
  taskStatus,
  withCounts
} from "./ota/task/UpgradeStateMachine.ts"
export {
  type Assignment,
  DeviceIsUpgrading,
  DevicesNotOfProduct,
  DownloadProtocol,
  type NewTask,
  type OtaTask,
  type RecordCounts,
  type RecordDetail,
  type RecordFilter,
  RecordNotFound,
  type RecordStatus,
  ScopeMode,
  type TaskKind,
  TaskNotFound,
  TaskState,
  type UpgradePolicy,
  type UpgradeRecord,
  type UpgradeTask,
  type UpgradeTaskStatus,
  type VerifyTask
} from "./ota/task/UpgradeTask.ts"
export { RequireVerification, UpgradeTasks } from "./ota/task/UpgradeTasks.ts"
export type { Attention, UpgradeWaitsFor } from "./overview/Attention.ts"
export { Nodes, type StorageState } from "./overview/Nodes.ts"
export { type Overview, ProjectOverview } from "./overview/ProjectOverview.ts"
export * from "./product/Product.ts"
export { Products } from "./product/Products.ts"
export * from "./product/ProductStore.ts"
export {
  type AccessKey,
  AccessKeyDraft,
  AccessKeyExpired,
  AccessKeyNotFound,
  AccessKeyNotRemovable,
  expiresSoon,
  MalformedAccessKey,
  type Principal,
  RightsExceeded,
  UnknownAccessKey
} from "./project/AccessKey.ts"
export { AccessKeys } from "./project/AccessKeys.ts"
export * from "./project/AccessKeyStore.ts"
export * from "./project/BrowserSession.ts"
export { BrowserSessions } from "./project/BrowserSessions.ts"
export * from "./project/BrowserSessionStore.ts"
export { AddressRanges, admitsAddress, type KeyRights, KeyScopes } from "./project/KeyRights.ts"
export * from "./project/Project.ts"
export { Projects } from "./project/Projects.ts"
export * from "./project/ProjectStore.ts"
export {
  DefaultQuotas,
  QuotaChange,
  QuotaExceeded,
  QuotaLimits,
  QuotaName,
  TooManyRegistrations
} from "./project/Quota.ts"
export { type QuotaReport, Quotas } from "./project/Quotas.ts"
export * from "./project/QuotaStore.ts"
export { Role, roleIncludes } from "./project/Role.ts"
export { AccessTokenExpired, accessTokenMillis } from "./provisioning/AccessToken.ts"
export * from "./provisioning/Binding.ts"
export { Bindings } from "./provisioning/Bindings.ts"
export * from "./provisioning/BindingStore.ts"
export { BleIdentities } from "./provisioning/BleIdentities.ts"
export * from "./provisioning/BleIdentity.ts"
export { ConnectRefusals, type RefusedConnect } from "./provisioning/ConnectRefusals.ts"
export * from "./provisioning/ConnectRefusalStore.ts"
export type * from "./provisioning/Credentials.ts"
export * from "./provisioning/DeviceAuthenticator.ts"
export * from "./provisioning/DeviceCredentials.ts"
export * from "./provisioning/ProofFailures.ts"
export * from "./provisioning/Provisioning.ts"
export * from "./provisioning/ReplayGuard.ts"
export * from "./provisioning/ReplayStore.ts"
export * from "./provisioning/Signature.ts"
export { TooManyWrongSignatures } from "./provisioning/SignatureGuard.ts"
export { type SignedWith, UnfreshSignature, UplinkTolerance } from "./provisioning/UplinkFreshness.ts"
export { RecordDays } from "./RecordRetention.ts"
export { type Action, ActionRecord, encodeAction, WebhookMethod } from "./scene/definition/Action.ts"
export { type CompareType, compileComparison, misfitOfType, refuseComparison } from "./scene/definition/Comparison.ts"
export { type Condition, ConditionRecord, encodeCondition } from "./scene/definition/Condition.ts"
export { nextTime } from "./scene/definition/CronExpression.ts"
export {
  type Scene,
  type SceneFilter,
  SceneNameTaken,
  SceneNotFound,
  type SceneRules,
  SceneStatus,
  type SceneTimer,
  SceneTimeZone,
  TooManyExecutions,
  watchedProducts
} from "./scene/definition/Scene.ts"
export { type ActionDraft, type ConditionDraft, SceneDraft, type TriggerDraft } from "./scene/definition/SceneDraft.ts"
export * from "./scene/definition/SceneId.ts"
export { SceneLimits } from "./scene/definition/SceneLimits.ts"
export * from "./scene/definition/SceneStore.ts"
export { type DeviceTrigger, encodeTrigger, type Trigger, TriggerRecord } from "./scene/definition/Trigger.ts"
export type { SampleEvent } from "./scene/evaluation/SampleEvent.ts"
export * as SceneCondition from "./scene/evaluation/SceneCondition.ts"
export * as SceneEvaluator from "./scene/evaluation/SceneEvaluator.ts"
export {
  type ActionOutcome,
  type Execution,
  executionsOf,
  type ExecutionStatus,
  hasFired,
  keptExecutions,
  leaseMillis,
  maxRetries,
  pendingExecution,
  retryDelay
} from "./scene/execution/Execution.ts"
export * from "./scene/execution/ExecutionStore.ts"
export * as SceneAction from "./scene/execution/SceneAction.ts"
export * as SceneExtensions from "./scene/execution/SceneExtensions.ts"
export { growTree, type SceneTree, type TreeEnd, type TreeGrowth, treeKeptMillis } from "./scene/execution/SceneTree.ts"
export { shownKey, type WebhookKeys } from "./scene/execution/Webhook.ts"
export * from "./scene/execution/WebhookClient.ts"
export * from "./scene/execution/WebhookKeyStore.ts"
export { makeWebhookPace, WebhookLimits } from "./scene/execution/WebhookPace.ts"
export { WebhookSigning } from "./scene/execution/WebhookSigning.ts"
export { isWaiting, type NewExecution, type WaitingExecution } from "./scene/matching/NewExecution.ts"
export { type SceneEvent } from "./scene/matching/SceneEvent.ts"
export { SceneIndex } from "./scene/matching/SceneIndex.ts"
export { type ChangedScene, type Explanation, Scenes } from "./scene/Scenes.ts"
export {
  delta,
  emptyShadow,
  maxAttributes,
  type Shadow,
  ShadowDraft,
  type ShadowEntry,
  type ShadowSide
} from "./shadow/Shadow.ts"
export { shadowDocument } from "./shadow/ShadowDocument.ts"
export { PropertyNotReported, Shadows, ShadowVersionConflict } from "./shadow/Shadows.ts"
export * from "./shadow/ShadowStore.ts"
export {
  beginAt,
  cursorAt,
  type Progress,
  type PushFailure,
  type Shard,
  type Worker as SubscriptionWorkerLease
} from "./subscription/Shards.ts"
export {
  defaultWorker,
  maxEvents,
  maxWait,
  type NewSubscription,
  type Subscription,
  SubscriptionChanges,
  SubscriptionDraft,
  SubscriptionFilter,
  SubscriptionLeaseLost,
  SubscriptionNameTaken,
  SubscriptionNotFound,
  SubscriptionPushes,
  SubscriptionPushesNot,
  SubscriptionStart,
  SubscriptionWebhook,
  TooManyWorkers,
  WorkerName
} from "./subscription/Subscription.ts"
export { SubscriptionEvent, subscriptionEvent } from "./subscription/SubscriptionEvent.ts"
export { type SubscriptionLag } from "./subscription/SubscriptionLag.ts"
export {
  type DeliveredEvents,
  Lease as SubscriptionLease,
  type ReadOptions,
  SubscriptionReader,
  type SubscriptionWorker
} from "./subscription/SubscriptionReader.ts"
export { type SubscriptionDetail, Subscriptions } from "./subscription/Subscriptions.ts"
export * from "./subscription/SubscriptionStore.ts"
export { type Audience, compatible, type ModelBreak } from "./thing-model/Compatibility.ts"
export {
  type ArrayType,
  type DataType,
  type DateType,
  type Field,
  type LabelledType,
  type Members,
  Misfit,
  type NumberType,
  type StructType,
  type TextType
} from "./thing-model/DataType.ts"
export { InvalidValues } from "./thing-model/InvalidValues.ts"
export { changesOf, type ModelChange } from "./thing-model/ModelChange.ts"
export * as ModelFormat from "./thing-model/ModelFormat.ts"
export { modelTypes } from "./thing-model/ModelSource.ts"
export * as ModelValidator from "./thing-model/ModelValidator.ts"
export { type ProductTemplate, productTemplates } from "./thing-model/ProductTemplates.ts"
export {
  ElementNotFound,
  ElementType,
  emptyModel,
  type EventElement,
  InvalidThingModel,
  listOf,
  ModelType,
  type PropertyElement,
  type ServiceElement,
  type ThingModel
} from "./thing-model/ThingModel.ts"
export { type ChangedModel, type ComparedModel, type ModelComparison, ThingModels } from "./thing-model/ThingModels.ts"
export * from "./thing-model/ThingModelStore.ts"
export {
  defineThingModel,
  type Desired,
  type EventOutputs,
  type ModelDefinition,
  type Reported,
  type ServiceInputs,
  type ServiceOutputs,
  type TypedModel,
  type Writable
} from "./thing-model/TypedModel.ts"
export { type TracedText, tracedText } from "./trace/TracedText.ts"
export * from "./trace/TraceEntry.ts"
export { type NewTraceEntry, TraceRecorder } from "./trace/TraceRecorder.ts"
export { TooManyTraces, TraceDraft, Traces } from "./trace/Traces.ts"
export * from "./trace/TraceStore.ts"
export * as TypedDevices from "./TypedDevices.ts"
export * as DeviceMethod from "./uplink/DeviceMethod.ts"
export * from "./uplink/DeviceMethods.ts"
export * as DeviceReply from "./uplink/DeviceReply.ts"
export { DeviceState } from "./uplink/DeviceState.ts"
export * as HistoryApart from "./uplink/HistoryApart.ts"
export * as HistoryFromFeed from "./uplink/HistoryFromFeed.ts"
export { networkTime } from "./uplink/methods/TimeMethods.ts"
export * from "./uplink/SubDeviceDirectory.ts"
export { Uplink, type UplinkExit } from "./uplink/Uplink.ts"
export * from "./uplink/UplinkMessage.ts"
export * from "./uplink/UplinkRates.ts"
export * from "./uplink/UplinkStore.ts"
export { type ArrivedMessage, UplinkTrace } from "./uplink/UplinkTrace.ts"
