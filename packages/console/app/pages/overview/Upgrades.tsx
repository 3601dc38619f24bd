/**
 * Upgrades under way, each as a bar.
 */
import { useProducts } from "../../parts/Devices.tsx"
import { Card } from "../../parts/Page.tsx"
import { Bar } from "../../parts/Small.tsx"
import { Table } from "../../parts/Table.tsx"
import { formatNumber, useTexts } from "../../text/text.ts"
import { partsOf, TaskStatus } from "../firmware/states.tsx"
import type { OverviewData } from "./Overview.tsx"

export const Upgrades = ({ upgrades: { tasks, total } }: { readonly upgrades: OverviewData["upgrades"] }) => {
  const { common, overview } = useTexts()
  const products = useProducts()
  const nameOf = (key: string) => products.data?.results.find(({ product_key }) => product_key === key)?.name ?? key
  return (
    <Card title={overview.upgrades}>
      {tasks.length === 0
        ? <p class="soft">{overview.noUpgrades}</p>
        : (
          <>
            <Table
              caption={overview.upgrades}
              rows={tasks}
              keyOf={({ task_id }) => String(task_id)}
              columns={[
                {
                  id: "version",
                  title: overview.target,
                  cell: ({ firmware_id, module, task_id, version }) => (
                    <a href={`/console/firmware/${firmware_id}/campaigns/${task_id}`}>{`${module} ${version}`}</a>
                  )
                },
                { id: "product", title: common.productLabel, cell: ({ product_key }) => <a href={`/console/products/${product_key}`}>{nameOf(product_key)}</a> },
                { id: "status", title: common.status, cell: ({ status }) => <TaskStatus status={status} /> },
                {
                  id: "progress",
                  title: overview.progress,
                  cell: ({ summary, version }) => <Bar label={version} parts={partsOf(summary)} />
                },
                {
                  id: "failed",
                  title: overview.failed,
                  kind: "number",
                  cell: ({ summary }) => formatNumber(summary.failed)
                }
              ]}
            />
            {total > tasks.length && <p class="soft">{overview.newest(formatNumber(tasks.length), formatNumber(total))}</p>}
          </>
        )}
    </Card>
  )
}
