/**
 * The pages of the console and their addresses.
 */
import type { ComponentType } from "preact"
import { lazy, LocationProvider, Route, Router, useLocation } from "preact-iso"
import { useEffect, useState } from "preact/hooks"
import type { ApiError } from "./api/ApiError.ts"
import { readAgain } from "./api/live.ts"
import { followWindows, hasEnded, loadSession, session } from "./api/session.ts"
import { asApiError } from "./api/useQuery.ts"
import { Frame } from "./Frame.tsx"
import { NotFound } from "./NotFound.tsx"
import { NotLoaded } from "./NotLoaded.tsx"
import { Questions } from "./parts/Dialog.tsx"
import { Empty, Page } from "./parts/Page.tsx"
import { Failure } from "./parts/Shown.tsx"
import { Toasts } from "./parts/toasts.tsx"
import { addressOf, readablePlaces } from "./places.ts"
import { SignIn, SignInAgain } from "./SignIn.tsx"
import { useTexts } from "./text/text.ts"

/** A page that is loaded when somebody opens it. `lazy` keeps what comes of it, also a failure. */
const page = (load: () => Promise<{ readonly default: ComponentType }>) =>
  lazy(() => load().catch(() => ({ default: NotLoaded })))

const Overview = page(() => import("./pages/overview/Overview.tsx"))
const Products = page(() => import("./pages/products/Products.tsx"))
const Product = page(() => import("./pages/products/Product.tsx"))
const Devices = page(() => import("./pages/devices/Devices.tsx"))
const Connect = page(() => import("./pages/devices/Connect.tsx"))
const Device = page(() => import("./pages/device/Device.tsx"))
const Firmware = page(() => import("./pages/firmware/Firmware.tsx"))
const FirmwareVersion = page(() => import("./pages/firmware/FirmwareVersion.tsx"))
const Campaign = page(() => import("./pages/firmware/Campaign.tsx"))
const Jobs = page(() => import("./pages/jobs/Jobs.tsx"))
const Job = page(() => import("./pages/jobs/Job.tsx"))
const Scenes = page(() => import("./pages/scenes/Scenes.tsx"))
const Scene = page(() => import("./pages/scenes/Scene.tsx"))
const Gateways = page(() => import("./pages/gateways/Gateways.tsx"))
const MeshNetworks = page(() => import("./pages/mesh/MeshNetworks.tsx"))
const MeshNetwork = page(() => import("./pages/mesh/MeshNetwork.tsx"))
const Events = page(() => import("./pages/events/Events.tsx"))
const Subscriptions = page(() => import("./pages/subscriptions/Subscriptions.tsx"))
const Subscription = page(() => import("./pages/subscriptions/Subscription.tsx"))
const AccessKeys = page(() => import("./pages/keys/AccessKeys.tsx"))
const Projects = page(() => import("./pages/projects/Projects.tsx"))
const AuditLog = page(() => import("./pages/audit/AuditLog.tsx"))

export const App = () => (
  <LocationProvider scope="/console">
    <SignedIn />
    <Questions />
    {hasEnded.value && <SignInAgain />}
    <Toasts />
  </LocationProvider>
)

const SignedIn = () => {
  const { common } = useTexts()
  const { path } = useLocation()
  const [error, setError] = useState<ApiError>()
  const [isBusy, setBusy] = useState(false)
  const load = () => {
    setError(undefined)
    loadSession().catch((caught: unknown) => setError(asApiError(caught)))
  }
  useEffect(load, [])
  useEffect(() => followWindows(readAgain), [])
  if (error !== undefined && session.value === undefined) {
    return <main class="sign-in"><Failure error={error} onRetry={load} /></main>
  }
  if (session.value === undefined) {
    return <main class="sign-in"><p class="loading" role="status">{common.loading}</p></main>
  }
  if (session.value === null) return <main class="sign-in"><SignIn /></main>
  if (!isEncoded(path)) return <Frame isBusy={false}><NotFound /></Frame>
  // Another key may be of another project: nothing of the one before stays.
  return (
    <Frame key={session.value.key_id} isBusy={isBusy}>
      <Router onLoadStart={() => setBusy(true)} onLoadEnd={() => setBusy(false)}>
        <Route path="/console" component={Home} />
        <Route path="/console/products" component={Products} />
        <One of="productKey" path="/console/products/:productKey/:tab?" component={Product} />
        <Route path="/console/devices" component={Devices} />
        <Route path="/console/devices/connect" component={Connect} />
        <One of="deviceId" path="/console/devices/:deviceId/:tab?" component={Device} />
        <Route path="/console/firmware" component={Firmware} />
        <One of="firmwareId" path="/console/firmware/:firmwareId" component={FirmwareVersion} />
        <One of="taskId" path="/console/firmware/:firmwareId/campaigns/:taskId" component={Campaign} />
        <Route path="/console/jobs" component={Jobs} />
        <One of="jobId" path="/console/jobs/:jobId" component={Job} />
        <Route path="/console/scenes" component={Scenes} />
        <One of="sceneId" path="/console/scenes/:sceneId/:tab?" component={Scene} />
        <Route path="/console/gateways" component={Gateways} />
        <Route path="/console/mesh" component={MeshNetworks} />
        <One of="networkKey" path="/console/mesh/:networkKey" component={MeshNetwork} />
        <Route path="/console/events" component={Events} />
        <Route path="/console/subscriptions" component={Subscriptions} />
        <One of="subscriptionId" path="/console/subscriptions/:subscriptionId" component={Subscription} />
        <Route path="/console/keys" component={AccessKeys} />
        <Route path="/console/projects" component={Projects} />
        <Route path="/console/audit" component={AuditLog} />
        <Route default component={NotFound} />
      </Router>
    </Frame>
  )
}

/** The page of what its address names: with another one it begins anew. */
const One = (
  { component: Page, of, params }: {
    readonly path: string
    readonly of: string
    readonly component: ComponentType
    readonly params?: Readonly<Record<string, string>>
  }
) => <Page key={params?.[of]} />

/** The overview, or the first page that the access key may read. */
const Home = () => {
  const { common, shell } = useTexts()
  const { route } = useLocation()
  const [first] = readablePlaces()
  useEffect(() => {
    if (first !== undefined && first !== "overview") route(addressOf(first), true)
  }, [first, route])
  if (first === undefined) return <Page title={shell.pages.overview}><Empty title={common.notByKey} /></Page>
  return first === "overview" ? <Overview /> : null
}

/** Whether a path can be decoded: the router does not take `/console/devices/%ZZ`. */
const isEncoded = (path: string): boolean => {
  try {
    // The build leaves out a call whose result nobody uses.
    return decodeURIComponent(path) !== ""
  } catch {
    return false
  }
}
