const x: number = ;
