export interface Place {
  town: string;
  floor?: number;
}
