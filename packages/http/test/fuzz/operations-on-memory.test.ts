import { storages } from "../../../../vitest.storages.ts"
import { testDescribedOperations } from "./DescribedOperations.ts"

testDescribedOperations(storages[0]!)
