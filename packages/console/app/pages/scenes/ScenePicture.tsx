/**
 * Which scenes run each other: a circle is seen as a circle.
 */
import { api } from "../../api/client.ts"
import { readAll } from "../../api/readAll.ts"
import { useQuery } from "../../api/useQuery.ts"
import { Card } from "../../parts/Page.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { useTexts } from "../../text/text.ts"
import type { StoredScene } from "./draft.ts"
import "./scenes.css"

interface Node {
  readonly id: string
  readonly name: string
  readonly runs: ReadonlyArray<string>
}

export const ScenePicture = ({ scene }: { readonly scene: StoredScene }) => {
  const { scenes: { picture } } = useTexts()
  const query = useQuery(async (signal) => {
    const all = await readAll((query) => api.scenes.listScenes({ query, signal }))
    return around(scene.id, [...all.filter(({ id }) => id !== scene.id), scene].map(nodeOf))
  }, [scene.id, scene.updated_at])
  const setsBack = selfSet(scene)
  return (
    <Card>
      {setsBack !== undefined && <p class="notice warn">{picture.setsBack(setsBack)}</p>}
      <Shown query={query}>
        {(nodes) =>
          nodes.length === 1 && nodes[0]!.runs.length === 0 ? <p>{picture.alone}</p> : (
            <>
              {isInCircle(scene.id, nodes) && <p class="notice warn">{picture.loop}</p>}
              <Graph nodes={nodes} current={scene.id} label={picture.label(scene.name)} />
            </>
          )}
      </Shown>
    </Card>
  )
}

const nodeOf = ({ actions, id, name }: Pick<StoredScene, "actions" | "id" | "name">): Node => ({
  id,
  name,
  runs: actions.flatMap(({ URI, params }) =>
    URI === "action/rule" ? [String((params as Readonly<Record<string, unknown>>)["scene_id"])] : []
  )
})

/** The scenes that can be reached from one, in either direction. */
const around = (id: string, nodes: ReadonlyArray<Node>): ReadonlyArray<Node> => {
  const found = new Set([id])
  for (let size = 0; size !== found.size;) {
    size = found.size
    for (const node of nodes) {
      if (found.has(node.id)) for (const other of node.runs) found.add(other)
      else if (node.runs.some((other) => found.has(other))) found.add(node.id)
    }
  }
  return nodes.filter((node) => found.has(node.id))
}

const isInCircle = (id: string, nodes: ReadonlyArray<Node>): boolean => {
  const seen = new Set<string>()
  const runs = (from: string) => nodes.find((node) => node.id === from)?.runs ?? []
  const waiting = [...runs(id)]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (next === id) return true
    if (!seen.has(next)) waiting.push(...runs(next))
    seen.add(next)
  }
  return false
}

/** A property that the scene sets and that fires it, if there is one. */
const selfSet = ({ actions, triggers }: StoredScene): string | undefined => {
  const fires = new Set(
    triggers.filter(({ URI }) => URI === "trigger/device/property")
      .map(({ params }) => (params as Readonly<Record<string, unknown>>)["property_id"])
  )
  return actions.filter(({ URI }) => URI === "action/device/property")
    .flatMap(({ params }) => Object.keys((params as { readonly items?: object }).items ?? {}))
    .find((property) => fires.has(property))
}

const radius = 150
const [width, height] = [640, 420]

/** The scenes on a circle, in the order of their names, with an arrow to each that one runs. */
const Graph = (
  { current, label, nodes }: {
    readonly nodes: ReadonlyArray<Node>
    readonly current: string
    readonly label: string
  }
) => {
  const places = new Map(nodes.map(({ id }, index) => {
    const angle = 2 * Math.PI * index / nodes.length - Math.PI / 2
    return [id, { x: width / 2 + radius * 1.3 * Math.cos(angle), y: height / 2 + radius * Math.sin(angle) }]
  }))
  return (
    <div class="scene-graph-frame">
    <svg class="scene-graph" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
      <defs>
        <marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">
          <path d="M0 0L10 5L0 10z" />
        </marker>
      </defs>
      {nodes.flatMap(({ id, runs }) =>
        runs.map((to) => {
          const [from, end] = [places.get(id)!, places.get(to)]
          if (end === undefined) return null
          if (to === id) {
            return <path key={`${id} ${to}`} class="run" d={`M${from.x - 20} ${from.y - 18}c-10 -50 50 -50 40 0`} />
          }
          const [dx, dy] = [end.x - from.x, end.y - from.y]
          const length = Math.hypot(dx, dy)
          const [ux, uy] = [dx / length, dy / length]
          return (
            <line
              key={`${id} ${to}`}
              class="run"
              x1={from.x + ux * 24}
              y1={from.y + uy * 24}
              x2={end.x - ux * 26}
              y2={end.y - uy * 26}
            />
          )
        })
      )}
      {nodes.map(({ id, name }) => {
        const { x, y } = places.get(id)!
        return (
          <a key={id} href={`/console/scenes/${id}`} aria-label={name}>
            <circle cx={x} cy={y} r="18" class={id === current ? "node current" : "node"} />
            <text x={x} y={y + 36} text-anchor="middle">{name.length > 24 ? `${name.slice(0, 23)}…` : name}</text>
          </a>
        )
      })}
    </svg>
    </div>
  )
}
