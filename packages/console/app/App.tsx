/**
 * The pages of the console and their addresses.
 */
import { lazy, LocationProvider, Route, Router } from "preact-iso"
import { useEffect, useState } from "preact/hooks"
import type { ApiError } from "./api/ApiError.ts"
import { readAgain } from "./api/live.ts"
import { followWindows, hasEnded, loadSession, session } from "./api/session.ts"
import { asApiError } from "./api/useQuery.ts"
import { Frame } from "./Frame.tsx"
import { NotFound } from "./NotFound.tsx"
import { Questions } from "./parts/Dialog.tsx"
import { Failure } from "./parts/Shown.tsx"
import { Toasts } from "./parts/toasts.tsx"
import { SignIn, SignInAgain } from "./SignIn.tsx"
import { useTexts } from "./text/text.ts"

const Overview = lazy(() => import("./pages/overview/Overview.tsx"))
const Products = lazy(() => import("./pages/products/Products.tsx"))
const Product = lazy(() => import("./pages/products/Product.tsx"))
const Devices = lazy(() => import("./pages/devices/Devices.tsx"))
const Connect = lazy(() => import("./pages/devices/Connect.tsx"))
const Device = lazy(() => import("./pages/device/Device.tsx"))
const Firmware = lazy(() => import("./pages/firmware/Firmware.tsx"))
const FirmwareVersion = lazy(() => import("./pages/firmware/FirmwareVersion.tsx"))
const Campaign = lazy(() => import("./pages/firmware/Campaign.tsx"))
const Jobs = lazy(() => import("./pages/jobs/Jobs.tsx"))
const Job = lazy(() => import("./pages/jobs/Job.tsx"))
const Scenes = lazy(() => import("./pages/scenes/Scenes.tsx"))
const Scene = lazy(() => import("./pages/scenes/Scene.tsx"))
const Gateways = lazy(() => import("./pages/gateways/Gateways.tsx"))
const MeshNetworks = lazy(() => import("./pages/mesh/MeshNetworks.tsx"))
const MeshNetwork = lazy(() => import("./pages/mesh/MeshNetwork.tsx"))
const Events = lazy(() => import("./pages/events/Events.tsx"))
const Subscriptions = lazy(() => import("./pages/subscriptions/Subscriptions.tsx"))
const Subscription = lazy(() => import("./pages/subscriptions/Subscription.tsx"))
const AccessKeys = lazy(() => import("./pages/keys/AccessKeys.tsx"))
const Projects = lazy(() => import("./pages/projects/Projects.tsx"))
const AuditLog = lazy(() => import("./pages/audit/AuditLog.tsx"))

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
  // Another key may be of another project: nothing of the one before stays.
  return (
    <Frame key={session.value.key_id} isBusy={isBusy}>
      <Router onLoadStart={() => setBusy(true)} onLoadEnd={() => setBusy(false)}>
        <Route path="/console" component={Overview} />
        <Route path="/console/products" component={Products} />
        <Route path="/console/products/:productKey/:tab?" component={Product} />
        <Route path="/console/devices" component={Devices} />
        <Route path="/console/devices/connect" component={Connect} />
        <Route path="/console/devices/:deviceId/:tab?" component={Device} />
        <Route path="/console/firmware" component={Firmware} />
        <Route path="/console/firmware/:firmwareId" component={FirmwareVersion} />
        <Route path="/console/firmware/:firmwareId/campaigns/:taskId" component={Campaign} />
        <Route path="/console/jobs" component={Jobs} />
        <Route path="/console/jobs/:jobId" component={Job} />
        <Route path="/console/scenes" component={Scenes} />
        <Route path="/console/scenes/:sceneId/:tab?" component={Scene} />
        <Route path="/console/gateways" component={Gateways} />
        <Route path="/console/mesh" component={MeshNetworks} />
        <Route path="/console/mesh/:networkKey" component={MeshNetwork} />
        <Route path="/console/events" component={Events} />
        <Route path="/console/subscriptions" component={Subscriptions} />
        <Route path="/console/subscriptions/:subscriptionId" component={Subscription} />
        <Route path="/console/keys" component={AccessKeys} />
        <Route path="/console/projects" component={Projects} />
        <Route path="/console/audit" component={AuditLog} />
        <Route default component={NotFound} />
      </Router>
    </Frame>
  )
}
