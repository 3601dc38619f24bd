/**
 * How the project is: what it has, what is under way, what needs attention, and how it was.
 */
import { api } from "../../api/client.ts"
import type { Data } from "../../api/Operations.ts"
import { ownProducts } from "../../api/session.ts"
import { usePolledQuery } from "../../api/useQuery.ts"
import { Card, Empty, Page } from "../../parts/Page.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { Bar } from "../../parts/Small.tsx"
import { formatNumber, useTexts } from "../../text/text.ts"
import { ProductList } from "../products/ProductList.tsx"
import { Activity } from "./Activity.tsx"
import { AttentionList } from "./AttentionList.tsx"
import { rhythm } from "./rhythm.ts"
import { Servers } from "./Servers.tsx"
import "./overview.css"
import { Upgrades } from "./Upgrades.tsx"

export type OverviewData = Data<typeof api.overview.getOverview>

/** A key that is limited to products may not read how the project is: it gets what it may see. */
const Overview = () => ownProducts.value === undefined ? <OfProject /> : <OfProducts />

const OfProducts = () => {
  const { overview, shell } = useTexts()
  return (
    <Page title={shell.pages.overview} lead={overview.ofProducts}>
      <ProductList />
    </Page>
  )
}

const OfProject = () => {
  const { overview, shell } = useTexts()
  const query = usePolledQuery((signal) => api.overview.getOverview({ signal }), [], rhythm)
  return (
    <Page title={shell.pages.overview} lead={overview.lead}>
      <div class="stack">
        <Shown query={query}>
          {(data) => (
            <>
              {data.devices.total === 0 && <FirstSteps hasProducts={data.products > 0} />}
              <Numbers data={data} />
              <AttentionList attention={data.attention} />
            </>
          )}
        </Shown>
        <Activity />
        {query.data !== undefined && <Upgrades upgrades={query.data.upgrades} />}
        <Servers />
      </div>
    </Page>
  )
}

const FirstSteps = ({ hasProducts }: { readonly hasProducts: boolean }) => {
  const { overview } = useTexts()
  return (
    <Empty
      title={overview.noDevices}
      actions={hasProducts
        ? <a class="button primary" href="/console/devices/connect">{overview.connect}</a>
        : <a class="button primary" href="/console/products">{overview.createProduct}</a>}
    >
      {hasProducts ? overview.connectHint : overview.createProductHint}
    </Empty>
  )
}

const Numbers = ({ data: { bulk_commands, devices, jobs, products, scenes, upgrades } }: { readonly data: OverviewData }) => {
  const { common, overview } = useTexts()
  const { disabled, offline, online, total, unactive } = devices
  const statuses = [["online", online, "good"], ["offline", offline, "plain"], ["unactive", unactive, "warn"]] as const
  return (
    <>
      <Card title={overview.devices(formatNumber(total))}>
        <Bar
          label={overview.byStatus}
          parts={statuses.map(([status, count, mood]) => ({ title: common.deviceStatus[status], count, mood }))}
        />
        <div class="overview-figures">
          {statuses.map(([status, count]) => (
            <Figure key={status} href={`/console/devices?status=${status}`} title={common.deviceStatus[status]} value={count} />
          ))}
          <Figure href="/console/devices?enabled=disable" title={overview.disabled} value={disabled} />
        </div>
      </Card>
      <Card title={overview.has}>
        <div class="overview-figures">
          <Figure href="/console/products" title={overview.products} value={products} />
          <Figure href="/console/firmware" title={overview.upgrades} value={upgrades.total} />
          <Figure href="/console/scenes" title={overview.scenes} value={scenes.enabled} />
          <Figure href="/console/scenes" title={overview.executions} value={scenes.executions} />
          <Figure href="/console/devices?view=bulk" title={overview.bulkCommands} value={bulk_commands} />
          <Figure href="/console/jobs" title={overview.jobs} value={jobs} />
        </div>
      </Card>
    </>
  )
}

interface FigureProps {
  readonly title: string
  readonly value: number
  readonly href: string
}

const Figure = ({ href, title, value }: FigureProps) => (
  <div class="number">
    <strong>{formatNumber(value)}</strong>
    <span><a href={href}>{title}</a></span>
  </div>
)

export default Overview
